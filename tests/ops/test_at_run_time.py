"""Shapes, axes and positions that arrive as inputs: right for every value that leads to the declared shape, and a
status for every other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, helper

from mccompile import backend
from mccompile.base.dtypes import of_array
from mccompile.base.errors import CheckFailed, MccError
from mccompile.frontend.load import load_proto

RANDOM = np.random.default_rng(5)
X = RANDOM.standard_normal((3, 2, 2)).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def model(op: str, inputs: list[np.ndarray | None], shape: tuple[int, ...] | None, **attributes: Any) -> ModelProto:
    """One node whose operands are all inputs; the shape of its result is declared."""
    names = [f"i{n}" if array is not None else "" for n, array in enumerate(inputs)]
    infos = [
        helper.make_tensor_value_info(name, of_array(array).onnx, array.shape)
        for name, array in zip(names, inputs, strict=True)
        if array is not None
    ]
    x = next(array for array in inputs if array is not None)
    result = helper.make_tensor_value_info("y", of_array(x).onnx, shape)
    graph = helper.make_graph([helper.make_node(op, names, ["y"], **attributes)], "g", infos, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def feeds(inputs: list[np.ndarray | None]) -> dict[str, np.ndarray]:
    return {f"i{n}": array for n, array in enumerate(inputs) if array is not None}


CASES: list[tuple[str, list[np.ndarray | None], Mapping[str, Any], list[np.ndarray | None] | None]] = [
    # operator, operands, attributes, operands of the same shapes that lead to another shape
    ("ReduceSum", [X, ints(1)], {"keepdims": 0}, [X, ints(0)]),
    ("ReduceSum", [X, ints(-1)], {"keepdims": 0}, [X, ints(5)]),
    ("ReduceMax", [X, ints(2, 0)], {"keepdims": 1}, [X, ints(0, 0)]),
    ("ReduceLogSumExp", [X, ints(0)], {"keepdims": 0}, [X, ints(1)]),
    ("Reshape", [X, ints(2, 6)], {}, [X, ints(6, 2)]),
    ("Reshape", [X, ints(0, -1)], {}, [X, ints(2, -1)]),
    ("Expand", [X[:, :1], ints(1, 4, 1)], {}, [X[:, :1], ints(1, 5, 1)]),
    ("Tile", [X, ints(1, 3, 2)], {}, [X, ints(1, 2, 3)]),
    ("Slice", [X, ints(-1), ints(-4), ints(0), ints(-1)], {}, [X, ints(0), ints(2), ints(0), ints(1)]),
    ("Slice", [X, ints(1), ints(2**62), ints(-2), ints(2)], {}, [X, ints(0), ints(9), ints(1), ints(0)]),
    ("Pad", [X, ints(0, 1, 2, 1, 0, 0), None, None], {"mode": "constant"}, [X, ints(1, 1, 1, 1, 1, 1), None, None]),
    ("Pad", [X, ints(1, 1), None, ints(2)], {"mode": "reflect"}, [X, ints(1, 1), None, ints(1)]),
    ("Pad", [X, ints(2, -1), None, ints(0)], {"mode": "wrap"}, [X, ints(2, 0), None, ints(0)]),
    ("Pad", [X, ints(0, -1, 0, 0, 0, 3), None, None], {"mode": "edge"}, [X, ints(0, 0, 0, 0, 0, 0), None, None]),
    ("Unsqueeze", [X, ints(-1)], {}, [X, ints(0)]),
    ("Squeeze", [X[:, :, None], ints(2)], {}, [X[:, :, None], ints(1)]),
    ("CumSum", [X, ints(-2)], {"reverse": 1}, [X, ints(3)]),
    ("CenterCropPad", [X, ints(1, 4, 2)], {}, [X, ints(1, 4, 3)]),
    ("Resize", [X, None, None, ints(3, 4, 5)], {"mode": "linear"}, [X, None, None, ints(3, 5, 4)]),
    (
        "Resize",
        [X[0], None, np.array([1.5, 3], np.float32)],
        {"mode": "cubic"},
        [X[0], None, np.array([3, 1.5], np.float32)],
    ),
]


@pytest.mark.parametrize(("op", "right", "attributes", "other"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_operands_that_are_inputs(
    op: str, right: list[np.ndarray | None], attributes: Mapping[str, Any], other: list[np.ndarray | None] | None
) -> None:
    session = onnxruntime.InferenceSession(model(op, right, None, **attributes).SerializeToString())
    (want,) = session.run(None, feeds(right))
    rep = backend.prepare(model(op, right, want.shape, **attributes), flags=("-std=c99", "-O1"))
    (got,) = rep.run(feeds(right))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-6)
    assert other is not None
    with pytest.raises(CheckFailed, match="outside the bounds"):
        rep.run(feeds(other))
    (again,) = rep.run(feeds(right))
    np.testing.assert_array_equal(again, got)


def test_a_shape_that_nobody_declares_is_refused() -> None:
    right: list[np.ndarray | None] = [X, ints(2, 6)]
    with pytest.raises(MccError, match="declare the shape"):
        load_proto(model("Reshape", right, None))


def test_a_declaration_that_cannot_be_met_is_refused() -> None:
    with pytest.raises(MccError, match="no axes make"):
        backend.prepare(model("Squeeze", [X, ints(1)], (7, 7)))
