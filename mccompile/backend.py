"""mccompile as an `onnx.backend.base.Backend`: for ONNX's own tests, and for programs that know that interface.

    rep = mccompile.backend.prepare("model.onnx")         # or what onnx.load gives
    scores, = rep.run([picture])

Invariant: inputs are inputs; what a caller passes to `run` is never treated as a constant.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from .base.dtypes import of_array
from .base.errors import MccError
from .base.structures import Interface
from .driver import Options, compile_graph
from .frontend.bounds import EVERYTHING
from .frontend.load import is_open, load_proto, read_proto
from .importers import states
from .toolchain.host_library import refuse_elsewhere
from .toolchain.lists import packed, unpacked
from .toolchain.run import Model

MOST = 64  # of sizes that nothing bounds; a run that needs more ends with an error
Shapes = Mapping[str, tuple[int | str | tuple[int, ...], ...]]


class Prepared(BackendRep):
    """A model for this machine. State that it has lasts from run to run.

    Inputs whose sizes the file leaves open have those of the first run: the model is built then, and again when other
    sizes come."""

    def __init__(self, build: Callable[[Shapes], Model], interface: Interface, free: frozenset[str]) -> None:
        self._build, self._interface, self._free = build, interface, free
        self._model: Model | None = None if free else build({})
        self._shapes: Shapes = {}

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Outputs in the order of the model; inputs in order, or by name. A sequence is a list of arrays, an absent
        optional value None. The result can also be read by name."""
        names = [name for name, _ in self._interface.inputs]
        if isinstance(inputs, Mapping):
            given = dict(inputs)
        elif isinstance(inputs, np.ndarray) or not isinstance(inputs, Sequence):
            given = {names[0]: inputs}
        else:
            if len(inputs) != len(names):
                raise ValueError(f"the model takes {', '.join(names)}, not {len(inputs)} of them")
            given = dict(zip(names, inputs, strict=True))
        shapes = {name: _shape_of(value) for name, value in given.items() if name in self._free and value is not None}
        if self._model is None or shapes != self._shapes:
            self._model, self._shapes = self._build(shapes), shapes
        report = self._model.report
        tensors = {tensor.name: tensor for tensor in report.inputs}
        interface = report.interface or self._interface

        def zeros(name: str) -> np.ndarray:
            return np.zeros(tensors[name].static_shape, tensors[name].dtype.numpy)

        arrays: dict[str, np.ndarray] = {}
        for name, form in interface.inputs:
            arrays |= packed(form, given[name], zeros, name)
        results = self._model.run(arrays)
        outputs = {name: unpacked(form, results) for name, form in interface.outputs}
        names = [name for name, _ in self._interface.outputs]  # one may stand there twice
        return namedtupledict("Outputs", names)(*(outputs[name] for name in names))


def _shape_of(value: Any) -> tuple[int | tuple[int, ...], ...]:
    """The shape of an array, or those of all arrays in a list."""
    return tuple(np.shape(element) for element in value) if isinstance(value, list | tuple) else np.shape(value)


class MccompileBackend(Backend):
    @classmethod
    def is_compatible(cls, model: ModelProto | str | Path, device: str = "CPU", **kwargs: Any) -> bool:
        """Can the model be compiled?"""
        try:
            _compile(*_in_memory(model), _options(kwargs))
        except MccError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto | str | Path, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Compiles and builds a model, or the file of one. Keywords are those of `mccompile.Options`, besides `flags`
        for the C compiler (else those of the target), `cc` to name it, and `folder` of external data. `bounds` are of
        sizes that follow from data; where nothing bounds one it is 64, and less for more than three
        such sizes of one tensor. What cannot be compiled raises `mccompile.MccError`."""
        if not cls.supports_device(device):
            raise ValueError(f"there is no device {device!r}; code runs on CPU")
        flags, cc = kwargs.pop("flags", ()), kwargs.pop("cc", None)
        model, beside = _in_memory(model)
        folder = kwargs.pop("folder", beside)
        options = _options(kwargs)
        options = replace(options, state={**states.declared(model), **options.state})
        target = options.resolved_target()
        refuse_elsewhere(target)

        def build(shapes: Shapes) -> Model:
            package = _compile(model, folder, replace(options, shapes={**options.shapes, **shapes}))
            with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
                package.write(Path(scratch, "out"))
                return Model.build(Path(scratch, "out"), cc, flags or target.cflags)

        constants = {tensor.name for tensor in model.graph.initializer}
        constants |= {tensor.values.name for tensor in model.graph.sparse_initializer}
        constants |= set(options.state.values())
        inputs = [entry for entry in model.graph.input if entry.name not in constants]
        is_free = [e.name not in options.shapes and is_open(e, options.dims, options.bounds) for e in inputs]
        free = frozenset(entry.name for entry, found in zip(inputs, is_free, strict=True) if found)
        outputs = [entry for entry in model.graph.output if entry.name not in options.state]
        plain = Interface(_tensors(entry.name for entry in inputs), _tensors(e.name for e in outputs))
        return Prepared(build, plain, free)

    @classmethod
    def run_model(
        cls, model: ModelProto | str | Path, inputs: Any, device: str = "CPU", **kwargs: Any
    ) -> tuple[np.ndarray, ...]:
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[np.ndarray, ...]:
        """A single node; types of its outputs follow from the inputs. `opset_version` says which meaning of the
        operator counts."""
        arrays = [np.asarray(array) for array in ([inputs] if isinstance(inputs, np.ndarray) else inputs)]
        opset = kwargs.pop("opset_version", None)
        names = [name for name in node.input if name]
        graph_inputs = [_value_info(name, array) for name, array in zip(names, arrays, strict=True)]
        outputs = [ValueInfoProto(name=name) for name in node.output if name]
        graph: GraphProto = helper.make_graph([node], node.op_type or "node", graph_inputs, outputs)
        opsets = [helper.make_opsetid(node.domain, opset)] if opset else None
        model = helper.make_model(graph, **({"opset_imports": opsets} if opsets else {}))
        return cls.prepare(model, device, **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.split(":")[0] == "CPU"


def _value_info(name: str, array: np.ndarray) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, of_array(array).onnx, array.shape)


def _tensors(names: Iterable[str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, name) for name in names)


def _options(keywords: Mapping[str, Any]) -> Options:
    options = Options(**keywords)
    return replace(options, bounds={EVERYTHING: (MOST,), **options.bounds})


def _in_memory(model: ModelProto | str | Path) -> tuple[ModelProto, Path | None]:
    """A model, and the folder of its external data."""
    if isinstance(model, ModelProto):
        return model, None
    return read_proto(Path(model)), Path(model).parent


def _compile(model: ModelProto, folder: Path | None, options: Options) -> Any:
    graph = load_proto(model, folder, options.dims, options.shapes, bounds=options.bounds)
    return compile_graph(graph, options, options.name or model.graph.name or "model")


is_compatible = MccompileBackend.is_compatible
prepare = MccompileBackend.prepare
run_model = MccompileBackend.run_model
run_node = MccompileBackend.run_node
supports_device = MccompileBackend.supports_device
