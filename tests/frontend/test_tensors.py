"""Tensors of a file that contradict themselves: refused with a reason, whatever numpy would say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, SparseTensorProto, TensorProto, helper, numpy_helper

from mccompile.base.budgets import limited
from mccompile.base.errors import MccError
from mccompile.frontend.load import load_proto


def added(*, sparse: SparseTensorProto | None = None, dense: TensorProto | None = None) -> ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "g", [x], [y])
    graph.sparse_initializer.extend([sparse] if sparse is not None else [])
    graph.initializer.extend([dense] if dense is not None else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def sparse(indices: np.ndarray, *shape: int) -> SparseTensorProto:
    made = SparseTensorProto(dims=shape)
    made.values.CopyFrom(numpy_helper.from_array(np.ones(len(indices), np.float32), "w"))
    made.indices.CopyFrom(numpy_helper.from_array(indices, "i"))
    return made


@pytest.mark.parametrize(
    ("indices", "shape", "why"),
    [
        (np.array([5]), (2,), "an index lies outside"),
        (np.array([-1]), (2,), "an index lies outside"),
        (np.array([2**62]), (2,), "an index lies outside"),
        (np.array([[0, 5]]), (1, 2), "an index lies outside"),
        (np.array([0]), (0,), "an index lies outside"),
        (np.array([0.5]), (2,), "its indices are f64"),
        (np.array([0]), (), "has no axes"),
        (np.array([0]), (-2,), "negative dimension"),
        (np.array([[0, 0, 0]]), (2,), "do not fit"),
        (np.array([3]), (2**40,), "4398046511104 bytes"),
        (np.array([3]), (2**40, 2**40), "as a dense"),
    ],
)
def test_a_sparse_tensor_that_cannot_be(indices: np.ndarray, shape: tuple[int, ...], why: str) -> None:
    with pytest.raises(MccError, match=f"(?s)initializer 'w'.*{why}"):
        load_proto(added(sparse=sparse(indices, *shape)))


def test_what_a_sparse_tensor_takes_written_out_is_bounded() -> None:
    model = added(sparse=sparse(np.array([1]), 2))
    assert load_proto(model).nodes
    with limited(dense=7), pytest.raises(MccError, match="it takes 8 bytes, 7 are the most"):
        load_proto(model)


def test_axes_of_constants_are_bounded() -> None:
    many = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1] * 500, raw_data=b"\0" * 4)
    with pytest.raises(MccError, match="it has 500 axes, 32 are the most"):
        load_proto(added(dense=many))


@pytest.mark.parametrize(
    ("key", "text", "why"),
    [
        ("location", "a\0b", "cannot be: embedded null byte"),
        ("location", "a" * 5000, "File name too long"),
        ("offset", "9" * 5000, "is not a number"),
        ("offset", "\u0664", "is not a number"),  # a digit to Python
    ],
)
def test_external_data_that_cannot_be(key: str, text: str, why: str, tmp_path: Path) -> None:
    far = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    (tmp_path / "w.bin").write_bytes(bytes(8))
    for name, value in {"location": "w.bin", key: text}.items():
        far.external_data.add(key=name, value=value)
    with pytest.raises(MccError, match=why):
        load_proto(added(dense=far), tmp_path)


def test_an_output_of_no_element_type_that_there_is() -> None:
    model = added(dense=numpy_helper.from_array(np.ones(2, np.float32), "w"))
    model.graph.output[0].type.tensor_type.elem_type = 99
    with pytest.raises(MccError, match=r"(?s)output 'y'.*element type 99 is not one"):
        load_proto(model)
