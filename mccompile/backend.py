"""mccompile as an `onnx.backend.base.Backend`: for ONNX's own tests, and for programs that know that interface.

    rep = mccompile.backend.prepare(onnx.load("model.onnx"))
    scores, = rep.run([picture])

Invariant: inputs are inputs; what a caller passes to `run` is never treated as a constant.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from .base.dtypes import of_array
from .base.errors import MccError
from .driver import Options, compile_graph
from .frontend.load import load_proto
from .toolchain.build import DEFAULT_FLAGS
from .toolchain.run import Model


class Prepared(BackendRep):
    """A model built for this machine. State that it has lasts from run to run."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def run(self, inputs: Any, **kwargs: Any) -> tuple[np.ndarray, ...]:
        """Outputs in the order of the model; inputs in order, or by name. The result can also be read by name."""
        names = [tensor.name for tensor in self._model.report.inputs]
        if isinstance(inputs, Mapping):
            given = {name: np.asarray(array) for name, array in inputs.items()}
        elif isinstance(inputs, np.ndarray) or not isinstance(inputs, Sequence):
            given = {names[0]: np.asarray(inputs)}
        else:
            if len(inputs) != len(names):
                raise ValueError(f"the model takes {len(names)} inputs ({', '.join(names)}), not {len(inputs)}")
            given = {name: np.asarray(array) for name, array in zip(names, inputs, strict=True)}
        results = self._model.run(given)
        outputs = [tensor.name for tensor in self._model.report.outputs]
        return namedtupledict("Outputs", outputs)(*(results[name] for name in outputs))


class MccompileBackend(Backend):
    @classmethod
    def is_compatible(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Can the model be compiled?"""
        try:
            _compile(model, _options(kwargs), None)
        except MccError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **kwargs: Any) -> Prepared:
        """Compiles and builds. Keywords are those of `mccompile.Options`, besides `flags` for the C compiler, `cc` to
        name it, and `folder` of external data. What cannot be compiled raises `mccompile.base.errors.MccError`."""
        if not cls.supports_device(device):
            raise ValueError(f"there is no device {device!r}; code runs on CPU")
        flags, cc, folder = kwargs.pop("flags", DEFAULT_FLAGS), kwargs.pop("cc", None), kwargs.pop("folder", None)
        package = _compile(model, _options(kwargs), folder)
        with tempfile.TemporaryDirectory(prefix="mccompile-") as scratch:
            package.write(Path(scratch, "out"))
            return Prepared(Model.build(Path(scratch, "out"), cc, flags))

    @classmethod
    def run_model(cls, model: ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[np.ndarray, ...]:
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


def _options(keywords: Mapping[str, Any]) -> Options:
    return Options(**keywords)


def _compile(model: ModelProto, options: Options, folder: Path | None) -> Any:
    graph = load_proto(model, folder, options.dims, options.shapes, bounds=options.bounds)
    return compile_graph(graph, options, options.name or model.graph.name or "model")


is_compatible = MccompileBackend.is_compatible
prepare = MccompileBackend.prepare
run_model = MccompileBackend.run_model
run_node = MccompileBackend.run_node
supports_device = MccompileBackend.supports_device
