"""Many single nodes compiled as one model, and what onnxruntime says of each.

One compilation and one build serve all nodes, so that every operator can be tried at every opset in little time. Where
onnxruntime has no implementation, onnx's reference evaluator is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as states

from mccompile import backend

# Where no node needs another there is no order or sharing to be found, and looking for one takes most of the time.
UNSEARCHED: Mapping[str, Any] = {
    "without": frozenset({"order_calls", "fuse_line_buffers", "bufferize"}),
    "planner": "greedy-by-size",
}


@dataclass(frozen=True)
class One:
    """One node: its operands, those of them that are constants of the model, its attributes."""

    label: str
    op: str
    ins: Sequence[np.ndarray | None]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constant: frozenset[int] = frozenset()
    outs: int = 1


@dataclass(frozen=True)
class Outcome:
    got: np.ndarray
    want: np.ndarray

    def hold(self) -> None:
        """Types and shapes are alike, floats close, everything else equal."""
        assert (self.got.dtype, self.got.shape) == (self.want.dtype, self.want.shape)
        if self.want.dtype.kind == "f":
            np.testing.assert_allclose(self.got, self.want, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(self.got, self.want)


def comparison(opsets: Sequence[int], wanted: Callable[[int], Sequence[One]]) -> Callable[[int, str], None]:
    """A test of every node with one result, at every opset."""

    @cache
    def results(opset: int) -> dict[str, list[Outcome]]:
        return outcomes(opset, wanted(opset))

    @pytest.mark.parametrize(("opset", "label"), [(n, one.label) for n in opsets for one in wanted(n)], ids=str)
    def same(opset: int, label: str) -> None:
        [outcome] = results(opset)[label]
        outcome.hold()

    return same


def outcomes(opset: int, ones: Sequence[One]) -> dict[str, list[Outcome]]:
    """Results of all nodes by label."""
    expected = {one.label: _expected(opset, one) for one in ones}
    everything = _model(opset, ones, expected)
    rep = backend.prepare(everything, flags=("-O1",), **UNSEARCHED)
    feed = {f"{one.label}_in{i}": array for one in ones for i, array in enumerate(one.ins) if i not in one.constant}
    got = rep.run({name: array for name, array in feed.items() if array is not None})
    names = [output.name for output in everything.graph.output]
    found = dict(zip(names, got, strict=True))
    return {
        label: [Outcome(found[f"{label}_out{i}"], want) for i, want in enumerate(wants)]
        for label, wants in expected.items()
    }


def _model(opset: int, ones: Sequence[One], expected: Mapping[str, Sequence[np.ndarray]]) -> onnx.ModelProto:
    nodes, inputs, outputs, constants = [], [], [], []
    for one in ones:
        names = [f"{one.label}_in{i}" if array is not None else "" for i, array in enumerate(one.ins)]
        results = [f"{one.label}_out{i}" for i in range(one.outs)]
        nodes.append(helper.make_node(one.op, names, results, name=one.label, **one.attributes))
        for i, array in enumerate(one.ins):
            if array is None:
                continue
            if i in one.constant:
                constants.append(numpy_helper.from_array(array, names[i]))
            else:
                inputs.append(helper.make_tensor_value_info(names[i], _type(array), array.shape))
        wants = expected.get(one.label)
        for i, name in enumerate(results):
            if wants is None:  # to be found out
                outputs.append(onnx.ValueInfoProto(name=name))
            else:
                outputs.append(helper.make_tensor_value_info(name, _type(wants[i]), wants[i].shape))
    graph = helper.make_graph(nodes, "bundle", inputs, outputs, constants)
    version = 8 if opset < 21 else min(13, onnx.IR_VERSION)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=version)


def _type(array: np.ndarray) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def _expected(opset: int, one: One) -> list[np.ndarray]:
    model = _model(opset, [one], {})
    feed = {f"{one.label}_in{i}": a for i, a in enumerate(one.ins) if a is not None and i not in one.constant}
    model = onnx.shape_inference.infer_shapes(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    refusals = (RuntimeError, *(getattr(states, name) for name in ("Fail", "InvalidGraph", "NotImplemented")))
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        results = [np.asarray(result) for result in session.run(None, feed)]
        return [_typed(result, output) for result, output in zip(results, model.graph.output, strict=True)]
    except refusals:
        return [np.asarray(result) for result in ReferenceEvaluator(model).run(None, feed)]


def _typed(result: np.ndarray, output: onnx.ValueInfoProto) -> np.ndarray:
    """onnxruntime gives the bytes of types that numpy lacks."""
    number = output.type.tensor_type.elem_type
    dtype = helper.tensor_dtype_to_np_dtype(number) if number else result.dtype
    return result.view(dtype) if result.dtype == np.uint8 and dtype.itemsize == 1 else result
