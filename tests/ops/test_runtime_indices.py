"""Indices that are made at run time never reach foreign memory: those outside mean the nearest element inside."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper

from mccompile import backend

WILD = np.array([-(2**63), -5, -4, -1, 0, 3, 4, 2**63 - 1], np.int64)
INSIDE = np.array([0, 0, 0, 3, 0, 3, 3, 3])


def run(op: str, *operands: np.ndarray) -> np.ndarray:
    names = [f"in{i}" for i in range(len(operands))]
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in zip(names, operands, strict=True)
    ]
    output = helper.make_tensor_value_info("out", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(op, names, ["out"])], "wild", inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return np.asarray(backend.prepare(model).run(list(operands))[0])


def test_gather() -> None:
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.testing.assert_array_equal(run("Gather", x, WILD), x[INSIDE])


def test_scatter() -> None:
    x, updates = np.zeros(4, np.float32), np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(run("ScatterElements", x, WILD, updates), [4, 0, 0, 7])


def test_reverse_sequence_longer_than_the_input() -> None:
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(run("ReverseSequence", x, np.array([3, 9]))[:, 0], x[::-1, 0])
