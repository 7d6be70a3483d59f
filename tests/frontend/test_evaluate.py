"""What constant operands give: the same bytes on every machine, and nothing where that cannot be promised."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper, parser

from mccompile.frontend.evaluate import constant_of, dot, evaluate
from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Node

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'
LIMIT = 1 << 20


def node_of(call: str, y: str, **arrays: np.ndarray) -> Node:
    model = parser.parse_model(f"{HEAD}g () => ({y} y) {{ y = {call} }}")
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in arrays.items())
    graph = load_proto(model)
    (node,) = graph.nodes
    return node


@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 4), (4, 5)), ((2, 3, 4), (4, 5)), ((2, 1, 3, 4), (5, 4, 2)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,))],
)
def test_dot_is_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    left, right = rng.standard_normal(a), rng.standard_normal(b)
    np.testing.assert_allclose(dot(left, right), np.matmul(left, right))


def test_gemm_with_everything() -> None:
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 3), (5, 4), (1, 5)))
    node = node_of("Gemm <transA = 1, transB = 1, alpha = 0.5, beta = 2.0> (a, b, c)", "float[3,5]", a=a, b=b, c=c)
    results = evaluate(node, LIMIT)
    assert results is not None and results[0] is not None
    exact = 0.5 * a.astype(float).T @ b.astype(float).T + 2.0 * c
    assert np.abs(results[0].array - exact).max() <= np.spacing(np.abs(exact).max().astype(np.float32)) / 2


def test_integer_products_wrap_around_as_they_do_at_run_time() -> None:
    a = np.array([[2**30, 2**30]], np.int32)
    results = evaluate(node_of("MatMul(a, b)", "int32[1,1]", a=a, b=np.array([[2], [2]], np.int32)), LIMIT)
    assert results is not None and results[0] is not None
    assert results[0].array.tolist() == [[0]]


def test_a_result_that_is_too_large_is_not_computed() -> None:
    node = node_of("Expand(a, n)", "float[1000]", a=np.zeros(1, np.float32), n=np.array([1000]))
    assert evaluate(node, 1000) is None
    assert evaluate(node, 4000) is not None


@pytest.mark.parametrize(
    "call",
    [
        "LRN <size = 5, alpha = 0.1> (x)",
        'Resize <mode = "cubic", coordinate_transformation_mode = "pytorch_half_pixel"> (x, , s)',
        "MaxPool <kernel_shape = [1, 1]> (x)",
    ],
)
def test_what_the_evaluator_computes_wrong_is_not_folded(call: str) -> None:
    x, scales = np.arange(8.0).astype(np.float32).reshape(1, 2, 2, 2), np.array([1, 1, 0.5, 1], np.float32)
    height = 1 if "Resize" in call else 2
    assert evaluate(node_of(call, f"float[1,2,{height},2]", x=x, s=scales), LIMIT) is None


def test_what_the_evaluator_cannot_do_is_not_folded() -> None:
    model = parser.parse_model(f"{HEAD}g (float[2] x) => (float[2] y) {{ y = Relu(x) }}")
    (node,) = load_proto(model).nodes
    assert evaluate(node, LIMIT) is None  # its operand is not a constant


@pytest.mark.parametrize("axis", [np.array(0), np.array([0])], ids=["scalar", "vector"])
def test_a_vector_of_one_element_does_as_scalar(axis: np.ndarray) -> None:
    """torch's repeat_interleave gives CumSum its axis so, and the size of a tensor follows from the sums."""
    results = evaluate(node_of("CumSum(a, axis)", "int64[3]", a=np.array([1, 0, 2]), axis=axis), LIMIT)
    assert results is not None and results[0] is not None
    assert results[0].array.tolist() == [1, 1, 3]


def test_a_long_chain_of_constants_is_followed_only_so_far() -> None:
    body = " ".join(f"v{i + 1} = Neg(v{i})" for i in range(3000))
    graph = load_proto(parser.parse_model(f"{HEAD}g () => (float[1] v3000) <float[1] v0 = {{1}}> {{ {body} }}"))
    nodes = list(graph.nodes)
    assert constant_of(nodes[9].output, {}) is not None
    assert constant_of(nodes[-1].output, {}) is None


def test_an_old_opset_is_not_trusted_to_the_evaluator() -> None:
    text = """<ir_version: 4, opset_import: ["" : 9]>
        g () => (float[1,2,2] y) <float[1,2,2] a = {1, 2, 3, 4}> { y = Softmax <axis = 1> (a) }"""
    (node,) = load_proto(parser.parse_model(text)).nodes
    assert evaluate(node, LIMIT) is None


@pytest.mark.parametrize(("element", "folded"), [(127.9, True), (128.0, False), (np.nan, False), (-np.inf, False)])
def test_a_conversion_that_overflows_is_left_to_run_time(element: float, folded: bool) -> None:
    node = node_of("Cast <to = 3> (a)", "int8[1]", a=np.array([element], np.float32))
    assert (evaluate(node, LIMIT) is not None) is folded


@pytest.mark.parametrize(
    ("number", "name", "dtype"),
    [(10, "float16", "float16"), (11, "double", "float64"), (6, "int32", "int32"), (9, "bool", "bool")],
)
def test_conversions_are_folded(number: int, name: str, dtype: str) -> None:
    a = np.array([0, 1.75, -2.5, 100], np.float32)
    results = evaluate(node_of(f"Cast <to = {number}> (a)", f"{name}[4]", a=a), LIMIT)
    assert results is not None and results[0] is not None
    assert results[0].array.tolist() == a.astype(dtype).tolist()
    assert results[0].array.dtype == dtype
