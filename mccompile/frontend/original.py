"""A model file as ONNX itself understands it, for checks: run by onnx's reference evaluator, with inner tensors made
outputs, and with its test data.

Invariant: nothing here goes through our own graphs, so it can be held against them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

import numpy as np
from onnx import ModelProto, TensorProto, ValueInfoProto, load_model, numpy_helper
from onnx.reference import ReferenceEvaluator

from ..base.errors import BadFile, CheckFailed, Problem

_DecodeError: type[Exception] = import_module("google.protobuf.message").DecodeError

# What the evaluator is known to raise on models that it cannot run; it has no exception of its own.
_EVALUATOR_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, AssertionError)


class Original:
    """The model of a file that `load` has accepted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._model = ModelProto.FromString(path.read_bytes())
        graph = self._model.graph
        constants = {tensor.name for tensor in graph.initializer}
        self.inputs = [entry.name for entry in graph.input if entry.name not in constants]
        self.outputs = [entry.name for entry in graph.output]
        made = [name for node in graph.node for name in node.output if name]
        self.inner = [name for name in made if name not in self.outputs]  # in graph order, without those of regions

    def serialized(self, also: Sequence[str] = ()) -> bytes:
        """The file's model with more outputs."""
        if not also:
            return bytes(self._model.SerializeToString())
        copy = ModelProto()
        copy.CopyFrom(self._model)
        copy.graph.output.extend(ValueInfoProto(name=name) for name in also)
        return bytes(copy.SerializeToString())

    def evaluate(self, inputs: Mapping[str, np.ndarray], also: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Outputs by name, through onnx's reference evaluator."""
        wanted = [*self.outputs, *also]
        try:
            whole = load_model(str(self.path))  # with external data
            whole.graph.output.extend(ValueInfoProto(name=name) for name in also)
            results = ReferenceEvaluator(whole).run(wanted, dict(inputs))
        except _EVALUATOR_ERRORS as error:
            fix = "install onnxruntime, which is used as reference if it is there"
            why = f"{type(error).__name__}: {error}"
            raise CheckFailed(
                Problem("onnx's reference evaluator cannot run the model", str(self.path), why, fix)
            ) from error
        return {name: np.asarray(result) for name, result in zip(wanted, results, strict=True)}


def read_tensors(folder: Path, stem: str) -> list[np.ndarray]:
    """The tensors of `input_0.pb`, `input_1.pb`, ... in order."""
    found: list[np.ndarray] = []
    while (path := folder / f"{stem}_{len(found)}.pb").is_file():
        try:
            found.append(numpy_helper.to_array(TensorProto.FromString(path.read_bytes())))
        except (_DecodeError, ValueError, TypeError) as error:
            why = f"it is not a serialised TensorProto: {error}"
            raise BadFile(Problem("bad test data", str(path), why, "export the test data again")) from None
    return found
