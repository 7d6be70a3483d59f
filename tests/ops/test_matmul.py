"""MatMul, Gemm and MatMulInteger: what numpy and onnxruntime give, at every opset at which one of them changed."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from onnx import helper

from mccompile import backend
from mccompile.base import dims
from mccompile.base.dtypes import f32, f64
from mccompile.base.tensor import TensorType
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Fact, Invalid, Site
from mccompile.kinds.map import Map
from mccompile.ops.matmul import Gemm, MatMul

from .bundle import One, comparison

OPSETS = (7, 9, 10, 11, 13)


def floats(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(dtype)


def ints(*shape: int, dtype: type = np.int32) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(0, 200, shape).astype(dtype)


def products() -> Iterator[One]:
    shapes: tuple[tuple[str, tuple[int, ...], tuple[int, ...]], ...] = (
        ("matrices", (5, 7), (7, 3)),
        ("vectors", (7,), (7,)),
        ("vector_and_matrix", (7,), (7, 3)),
        ("matrix_and_vector", (5, 7), (7,)),
        ("vector_and_batch", (7,), (2, 7, 3)),
        ("batch_and_vector", (2, 4, 5, 7), (7,)),
        ("batch_and_matrix", (2, 4, 5, 7), (7, 3)),
        ("matrix_and_batch", (5, 7), (2, 4, 7, 3)),
        ("batches", (2, 1, 5, 7), (3, 7, 4)),
        ("one_matrix_in_a_batch", (2, 3, 5, 7), (1, 1, 7, 4)),
        ("long", (3, 2500), (2500, 2)),
        ("column_and_row", (5, 1), (1, 3)),
        ("columns_and_number", (2, 5, 1), (1,)),
        ("number_and_rows", (1,), (2, 1, 3)),
    )
    for label, left, right in shapes:
        yield One(label, "MatMul", [floats(*left), floats(*right)], constant=frozenset({1}))
    yield One("product_f64", "MatMul", [floats(2, 3, dtype=np.float64), floats(3, 4, dtype=np.float64)])
    a, b, c = floats(5, 7), floats(7, 3), floats(3)
    yield One("gemm", "Gemm", [a, b, c], constant=frozenset({1, 2}))
    yield One("gemm_scaled", "Gemm", [a, b, c], {"alpha": 0.5, "beta": -2.0})
    yield One("gemm_transposed", "Gemm", [floats(7, 5), floats(3, 7), floats(5, 1)], {"transA": 1, "transB": 1})
    yield One("gemm_without_beta", "Gemm", [a, b, np.full((5, 3), np.nan, np.float32)], {"beta": 0.0})
    yield One("gemm_one_number", "Gemm", [a, b, floats(1)])


def integer_products() -> Iterator[One]:
    yield One("ints", "MatMul", [ints(3, 4), ints(2, 4, 5)])
    yield One("gemm_ints", "Gemm", [ints(3, 4), ints(4, 5), ints(5)])


def quantized_products() -> Iterator[One]:
    a, b = ints(3, 4, dtype=np.uint8), ints(4, 5, dtype=np.uint8)
    zero = np.array(100, np.uint8)
    yield One("quantized", "MatMulInteger", [a, b])
    yield One("quantized_zeros", "MatMulInteger", [a, b, zero, zero])
    yield One("quantized_columns", "MatMulInteger", [a, b, None, ints(5, dtype=np.uint8)])
    yield One("quantized_batch", "MatMulInteger", [ints(2, 3, 4, dtype=np.uint8), b, zero, ints(5, dtype=np.uint8)])


def wanted(opset: int) -> list[One]:
    if opset == 10:
        return list(quantized_products())
    return [*products(), *(integer_products() if opset >= 9 else ())] + (
        [One("gemm_without_c", "Gemm", [floats(5, 7), floats(7, 3)])] if opset >= 11 else []
    )


test_same_as_onnxruntime = comparison(OPSETS, wanted)


def test_zero_points_per_row() -> None:
    # onnxruntime takes none of these and the reference evaluator subtracts them along the wrong axis.
    a, b = ints(3, 4, dtype=np.uint8), ints(4, 5, dtype=np.uint8)
    zeros = np.array([1, 20, 200], np.uint8)
    want = (a.astype(np.int32) - zeros[:, None].astype(np.int32)) @ b.astype(np.int32)
    types = {"a": a, "b": b, "zeros": zeros, "y": want}
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in types.items()
    ]
    node = helper.make_node("MatMulInteger", ["a", "b", "zeros"], ["y"])
    graph = helper.make_graph([node], "rows", infos[:3], infos[3:])
    [got] = backend.prepare(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])).run([a, b, zeros])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(("order", "sizes"), [((1, 0, 2), "12x5x3"), ((2, 0, 1, 3), "24x5x3")])
def test_batches_that_lie_side_by_side_are_rows(order: tuple[int, ...], sizes: str) -> None:
    x, w = floats(3, 4, 5) if len(order) == 3 else floats(3, 2, 4, 5), floats(5, 3)
    nodes = [helper.make_node("Transpose", ["x"], ["t"], perm=order), helper.make_node("MatMul", ["t", "w"], ["y"])]
    want = x.transpose(order) @ w
    ins = [helper.make_tensor_value_info(name, 1, array.shape) for name, array in (("x", x), ("w", w))]
    graph = helper.make_graph(nodes, "turned", ins, [helper.make_tensor_value_info("y", 1, want.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    [got] = backend.prepare(model).run([x, w])
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    written = compile_graph(load_proto(model), Options(), "turned").files["turned_kernels.c"].decode()
    assert f"_gemm_{sizes}(" in written


@pytest.mark.parametrize("number", [1, 16])
def test_nothing_is_added_up_of_columns_by_rows(number: int) -> None:
    """So they are multiplied as other elements are, in vectors of any type."""
    ins = [helper.make_tensor_value_info(name, number, shape) for name, shape in (("x", (9, 1)), ("z", (1, 7)))]
    node, out = helper.make_node("MatMul", ["x", "z"], ["y"]), helper.make_tensor_value_info("y", number, (9, 7))
    graph = helper.make_graph([node], "outer", ins, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    package = compile_graph(load_proto(model), Options(), "outer")
    assert [type(step.function.call.kind) for step in package.plan.steps()] == [Map]


def test_zero_points_of_turned_rows() -> None:
    a, b, zeros = ints(4, 3, 5, dtype=np.uint8), ints(5, 3, dtype=np.uint8), ints(4, 3, 1, dtype=np.uint8)
    order = (1, 0, 2)
    want = (a.astype(np.int32) - zeros).transpose(order) @ b.astype(np.int32)
    nodes = [helper.make_node("Transpose", [name], ["t" + name], perm=order) for name in ("a", "z")]
    nodes.append(helper.make_node("MatMulInteger", ["ta", "b", "tz"], ["y"]))
    arrays = {"a": a, "b": b, "z": zeros}
    ins = [helper.make_tensor_value_info(name, 2, array.shape) for name, array in arrays.items()]
    graph = helper.make_graph(nodes, "rows", ins, [helper.make_tensor_value_info("y", 6, want.shape)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    [got] = backend.prepare(model).run([a, b, zeros])
    np.testing.assert_array_equal(got, want)


def site(*types: TensorType) -> Site:
    return Site(tuple(Fact(type) for type in types), 1)


def test_free_rows_stay_free() -> None:
    n = dims.symbol("n", 1, 8)
    [fact] = MatMul().infer(site(TensorType(f32, (n, 4, 3)), TensorType(f32, (3, 5))))
    assert fact.type.shape == (n, 4, 5)


@pytest.mark.parametrize(
    ("op", "types"),
    [
        (MatMul(), (TensorType(f32, (2, 3)), TensorType(f32, (4, 5)))),
        (MatMul(), (TensorType(f32, (2, 2, 3)), TensorType(f32, (3, 3, 5)))),
        (MatMul(), (TensorType(f32, ()), TensorType(f32, (3,)))),
        (MatMul(), (TensorType(f32, (2, 3)), TensorType(f64, (3, 5)))),
        (Gemm(), (TensorType(f32, (1, 2, 3)), TensorType(f32, (3, 5)))),
        (Gemm(), (TensorType(f32, (2, 3)), TensorType(f32, (3, 5)), TensorType(f32, (2,)))),
        (Gemm(), (TensorType(f32, (2, 3)), TensorType(f32, (3, 5)), TensorType(f32, (4, 2, 5)))),
    ],
)
def test_contradiction_is_named(op: MatMul | Gemm, types: tuple[TensorType, ...]) -> None:
    with pytest.raises(Invalid):
        op.infer(site(*types))
