"""A model file as ONNX itself understands it, for checks: run by onnx's reference evaluator, with inner tensors made
outputs, and with its test data.

Invariant: nothing here goes through our own graphs, so it can be held against them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from onnx import (
    AttributeProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OptionalProto,
    SequenceProto,
    TensorProto,
    ValueInfoProto,
    load_external_data_for_model,
    numpy_helper,
)

from ..base.errors import BadFile, CheckFailed, Problem
from ..base.structures import Maybe
from ..importers import states
from ..importers.api import AS_IT_IS, Reading
from ..importers.tflite.convert import is_tflite
from ..judge.rules import Graph
from .drawing import drawing
from .judged import judged
from .load import contents, read_proto
from .own_functions import evaluators
from .scope import is_structure
from .u8s8_to_u8u8 import u8s8_to_u8u8

_DecodeError: type[Exception] = import_module("google.protobuf.message").DecodeError

# What the evaluator is known to raise on models that it cannot run; it has no exception of its own.
_EVALUATOR_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, AssertionError)


class Original:
    """The model of a file that `load` has accepted."""

    def __init__(self, path: Path, reading: Reading = AS_IT_IS) -> None:
        self.path, self.reading = path, reading
        self._model = read_proto(path, reading)
        self.states = states.declared(self._model)
        graph = self._model.graph
        _ask_for_full_accuracy(graph)
        constants = {tensor.name for tensor in graph.initializer}
        self.inputs = [entry.name for entry in graph.input if entry.name not in constants]
        self.outputs = [entry.name for entry in graph.output]
        made = [name for node in graph.node for name in node.output if name]
        self.inner = [name for name in made if name not in self.outputs]  # in graph order, without those of regions
        self.lengths = lengths(graph)
        self._model = u8s8_to_u8u8(self._model)
        self._labels = {node.output[0]: _labels(node) for node in graph.node if node.op_type == "ZipMap"}

    @property
    def tflite(self) -> bytes:
        """The file itself, where it is one of TFLite."""
        data = contents(self.path)
        return data if is_tflite(data) and not self.reading.prepend else b""

    @property
    def computed(self) -> set[str]:
        """Tensors that depend on inputs; others are weights, however they are stored."""
        found = set(self.inputs)
        for node in self._model.graph.node:
            regions = any(attribute.type == AttributeProto.GRAPH for attribute in node.attribute)
            if regions or not found.isdisjoint(node.input):
                found.update(node.output)
        return found

    @property
    def drawing(self) -> frozenset[str]:
        """The operators that draw random numbers."""
        return drawing(self._model)

    @property
    def is_quantized(self) -> bool:
        return any(node.op_type == "DequantizeLinear" for node in self._model.graph.node)

    def serialized(self, also: Sequence[str] = ()) -> bytes:
        """The file's model with more outputs."""
        return bytes((self._copy(also) if also else self._model).SerializeToString())

    def nudged(self, chance: np.random.Generator, also: Sequence[str] = ()) -> bytes:
        """The file's model with nudged weights; those in other files, and of regions, stay as they are."""
        copy = self._copy(also)
        for tensor in _tensors(copy.graph):
            if tensor.data_type in _FLOATS and tensor.data_location != TensorProto.EXTERNAL:
                tensor.CopyFrom(numpy_helper.from_array(nudged(numpy_helper.to_array(tensor), chance), tensor.name))
        return bytes(copy.SerializeToString())

    def widened(self, also: Sequence[str] = ()) -> bytes:
        """The file's model with doubles where it has floats; it may then have operators that no runtime has."""
        copy = self._copy(also)
        widen(copy.graph)
        return bytes(copy.SerializeToString())

    def _copy(self, also: Sequence[str] = ()) -> ModelProto:
        copy = ModelProto()
        copy.CopyFrom(self._model)
        copy.graph.output.extend(ValueInfoProto(name=name) for name in also)
        return copy

    def _whole(self, also: Sequence[str]) -> ModelProto:
        """With the data that lies in other files."""
        copy = self._copy(also)
        load_external_data_for_model(copy, str(self.path.parent))
        return copy

    def judged(self, also: Sequence[str] = ()) -> Graph:
        """The file's model as our own judge takes it."""
        return judged(self._whole(also), self.reading.functions)

    def in_doubles(self, inputs: Mapping[str, Any], also: Sequence[str] = ()) -> dict[str, Any] | None:
        """Outputs by name, with doubles in place of floats from the inputs on, through onnx's reference evaluator;
        None where that cannot compute them."""
        from onnx.reference import ReferenceEvaluator

        wanted = [*self.outputs, *also]
        try:
            whole = self._whole(also)
            widen(whole.graph)
            with np.errstate(all="ignore"):
                given = {name: _wide(value) for name, value in inputs.items()}
                results: list[Any] = list(ReferenceEvaluator(whole).run(wanted, given))
        except _EVALUATOR_ERRORS:
            return None
        return self.named(wanted, results)

    def evaluate(self, inputs: Mapping[str, Any], also: Sequence[str] = ()) -> dict[str, Any]:
        """Outputs by name, through onnx's reference evaluator."""
        from onnx.reference import ReferenceEvaluator  # takes a moment to import, and compiling does without

        wanted = [*self.outputs, *also]
        try:
            whole = self._whole(also)
            operators = evaluators(self.reading.functions, whole.graph.node)
            results: list[Any] = list(ReferenceEvaluator(whole, new_ops=operators).run(wanted, dict(inputs)))
        except _EVALUATOR_ERRORS as error:
            fix = "install onnxruntime, which is used as reference if it is there"
            if self.reading.functions:
                own = self.reading.functions[0]
                fix = f"say what {own.subject} computes: python=FILE with run(operands, attributes); or give --data"
            why = f"{type(error).__name__}: {error}"
            raise CheckFailed(
                Problem("onnx's reference evaluator cannot run the model", str(self.path), why, fix)
            ) from error
        return self.named(wanted, results)

    def named(self, names: Sequence[str], results: Sequence[Any]) -> dict[str, Any]:
        """Results of an evaluator by name, as arrays; lists (sequences) and None (an absent optional value) stay. Maps
        from labels to scores become rows of scores, which is what a compiled model gives."""
        return {name: _as_array(result, self._labels.get(name)) for name, result in zip(names, results, strict=True)}


_MOVES = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
(_LENGTHS, _TOTAL) = (5, 6)  # operands of GroupQueryAttention


def lengths(graph: GraphProto) -> dict[str, int]:
    """Inputs that must say how many tokens there are, less one: what attention has in its cache with the new ones."""
    made = {node.output[0]: node for node in graph.node if node.output}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {
        node.output[0]: attribute.t
        for node in graph.node
        for attribute in node.attribute
        if node.op_type == "Constant" and attribute.name == "value"
    }
    found = {}
    for node in graph.node:
        if node.op_type != "GroupQueryAttention" or len(node.input) <= _TOTAL or node.input[_TOTAL] not in constants:
            continue
        name = node.input[_LENGTHS]
        while name in made and made[name].op_type in _MOVES:
            name = made[name].input[0]
        found[name] = int(numpy_helper.to_array(constants[node.input[_TOTAL]]).reshape(-1)[0]) - 1
    return {entry.name: found[entry.name] for entry in graph.input if entry.name in found}


_FLOATS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
_SHORT = 2.0**11  # numbers of no more bits than this has are definitions: 1, 0.5, 1e4


def nudged(array: np.ndarray, chance: np.random.Generator) -> np.ndarray:
    """Floats moved up or down by a unit in the last place, or not at all; those with few bits stay as they are."""
    mantissa = np.frexp(array.astype(np.float64))[0] * _SHORT
    step = chance.integers(-1, 2, array.shape) * float(np.finfo(array.dtype).eps)
    with np.errstate(over="ignore", invalid="ignore"):
        moved = (array.astype(np.float64) * (1.0 + step)).astype(array.dtype)
    return np.where(np.isfinite(moved) & (mantissa != np.round(mantissa)), moved, array)


def _ask_for_full_accuracy(graph: GraphProto) -> None:
    """Products with packed weights may allow a runtime to make activations bytes; what is meant is their product."""
    for node in graph.node:
        kept = [attribute for attribute in node.attribute if attribute.name != "accuracy_level"]
        if len(kept) < len(node.attribute):
            del node.attribute[:]
            node.attribute.extend(kept)


def _tensors(graph: GraphProto) -> Iterator[TensorProto]:
    """The constants of a graph, without those of its regions."""
    yield from graph.initializer
    for node in graph.node:
        if node.op_type == "Constant":
            yield from (attribute.t for attribute in node.attribute if attribute.name == "value")


def widen(graph: GraphProto, types: Collection[int] = (TensorProto.FLOAT,)) -> None:
    """Doubles in place of floats."""
    del graph.value_info[:]
    for tensor in graph.initializer:
        _widen_tensor(tensor, types)
    for entry in (*graph.input, *graph.output):
        if entry.type.tensor_type.elem_type in types:
            entry.type.tensor_type.elem_type = TensorProto.DOUBLE
    for attribute in (attribute for node in graph.node for attribute in node.attribute):
        if attribute.name in ("to", "dtype") and attribute.i in types:
            attribute.i = TensorProto.DOUBLE
        if attribute.HasField("t"):
            _widen_tensor(attribute.t, types)
        if attribute.HasField("g"):
            widen(attribute.g, types)
    for node in graph.node:
        if node.op_type == "Constant":
            _widen_numbers(node)


def _widen_numbers(node: NodeProto) -> None:
    """A Constant that has its floats in the node."""
    for attribute in node.attribute:
        if attribute.name in ("value_float", "value_floats"):
            numbers = attribute.f if attribute.name == "value_float" else list(attribute.floats)
            wide = numpy_helper.from_array(np.asarray(numbers, np.float64))
            attribute.CopyFrom(AttributeProto(name="value", type=AttributeProto.TENSOR, t=wide))


def _wide(value: Any) -> Any:
    return value.astype(np.float64) if isinstance(value, np.ndarray) and value.dtype == np.float32 else value


def _widen_tensor(tensor: TensorProto, types: Collection[int]) -> None:
    if tensor.data_type in types and tensor.data_location != TensorProto.EXTERNAL:
        wide = numpy_helper.to_array(tensor).astype(np.float64)
        tensor.CopyFrom(numpy_helper.from_array(wide, tensor.name))


def _labels(node: NodeProto) -> list[Any]:
    """What a ZipMap calls its columns."""
    found = {attribute.name: attribute for attribute in node.attribute}
    if "classlabels_strings" in found:
        return [label.decode() for label in found["classlabels_strings"].strings]
    return list(found["classlabels_int64s"].ints) if "classlabels_int64s" in found else []


def _as_array(result: Any, labels: list[Any] | None) -> Any:
    if labels and isinstance(result, list):
        return np.array([[row[label] for label in labels] for row in result], np.float32).reshape(-1, len(labels))
    return result if result is None or isinstance(result, list) else np.asarray(result)


def read_values(folder: Path, stem: str, forms: Sequence[object] = ()) -> list[Any]:
    """What is in `input_0.pb`, `input_1.pb`, ... in order: arrays, lists of them, None. `forms` says which are
    sequences or optional values."""
    found: list[Any] = []
    while (path := folder / f"{stem}_{len(found)}.pb").is_file():
        form = forms[len(found)] if len(found) < len(forms) else None
        kind = OptionalProto if isinstance(form, Maybe) else SequenceProto if is_structure(form) else TensorProto
        try:
            found.append(_READERS[kind](kind.FromString(path.read_bytes())))
        except (_DecodeError, ValueError, TypeError) as error:
            why = f"it is not a serialised {kind.__name__}: {error}"
            raise BadFile(Problem("bad test data", str(path), why, "export the test data again")) from None
    return found


def write_values(folder: Path, stem: str, tensors: Mapping[str, np.ndarray]) -> None:
    """`input_0.pb`, `input_1.pb`, ... in order."""
    for number, (name, array) in enumerate(tensors.items()):
        (folder / f"{stem}_{number}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())


_READERS: dict[type[Any], Callable[[Any], Any]] = {
    TensorProto: numpy_helper.to_array,
    SequenceProto: numpy_helper.to_list,
    OptionalProto: numpy_helper.to_optional,
}
