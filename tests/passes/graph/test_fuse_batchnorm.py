"""Numbers: each fused graph gives in onnxruntime what the graph before it gave."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper, parser

from mccompile.frontend.load import load_proto
from mccompile.frontend.save import to_onnx
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.passes.api import Context
from mccompile.passes.graph.fuse_batchnorm import fuse_batchnorm
from mccompile.passes.lower import lower
from tests.passes.program.interpreter import outputs

RNG = np.random.default_rng(5)


def array(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def graph_of(body: str, x: str, y: str, **arrays: np.ndarray) -> Graph:
    head = '<ir_version: 9, opset_import: ["" : 17]>\n'
    model = parser.parse_model(f"{head}g (float[{x}] x) => (float[{y}] y) {{ {body} }}")
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in arrays.items())
    return load_proto(model)


def run_graph(graph: Graph, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    model = to_onnx(graph)
    model.ir_version, model.opset_import[0].version = 10, 21  # onnxruntime lags behind onnx
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def statistics(channels: int) -> dict[str, np.ndarray]:
    return {"s": array(channels), "b": array(channels), "m": array(channels), "v": np.abs(array(channels)) + 0.1}


CASES = {
    "convolution": ("c = Conv(x, w) y = BatchNormalization(c, s, b, m, v)", "2,6,5,5", "2,4,3,3", {"w": (4, 6, 3, 3)}),
    "convolution in groups with a bias": (
        "c = Conv <group = 2> (x, w, d) y = BatchNormalization <epsilon = 0.01> (c, s, b, m, v)",
        "2,6,5",
        "2,4,3",
        {"w": (4, 3, 3), "d": (4,)},
    ),
    "transposed convolution in groups": (
        "c = ConvTranspose <group = 2> (x, w) y = BatchNormalization(c, s, b, m, v)",
        "1,6,3,3",
        "1,4,5,5",
        {"w": (6, 2, 3, 3)},
    ),
    "gemm": (
        "c = Gemm <alpha = 0.5, beta = 2.0> (x, w, d) y = BatchNormalization(c, s, b, m, v)",
        "3,6",
        "3,4",
        {"w": (6, 4), "d": (1, 4)},
    ),
    "gemm with transposed weights": (
        "c = Gemm <transB = 1> (x, w) y = BatchNormalization(c, s, b, m, v)",
        "3,6",
        "3,4",
        {"w": (4, 6)},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_normalization_goes_into_the_weights(context: Context, case: str) -> None:
    body, x, y, shapes = CASES[case]
    arrays = {name: array(*shape) for name, shape in shapes.items()} | statistics(4)
    graph = graph_of(body, x, y, **arrays)
    feeds = {"x": array(*map(int, x.split(",")))}
    (before,) = run_graph(graph, feeds)
    fuse_batchnorm(graph, context)
    verify(graph)
    (node,) = graph.nodes
    assert node.provenance == ("c", "y")
    np.testing.assert_allclose(run_graph(graph, feeds)[0], before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("operator", ["Mul(c, k)", "Mul(k, c)", "Div(c, k)", "Add(c, k)", "Add(k, c)", "Sub(c, k)"])
@pytest.mark.parametrize("shape", [(4, 1, 1), (1, 4, 1, 1), (1,), ()])
def test_a_constant_per_channel_goes_into_the_weights(context: Context, operator: str, shape: tuple[int, ...]) -> None:
    graph = graph_of(f"c = Conv(x, w) y = {operator}", "1,3,5,5", "1,4,3,3", w=array(4, 3, 3, 3), k=array(*shape) + 3)
    feeds = {"x": array(1, 3, 5, 5)}
    (before,) = run_graph(graph, feeds)
    fuse_batchnorm(graph, context)
    verify(graph)
    assert [node.op.name for node in graph.nodes] == ["Conv"]
    np.testing.assert_allclose(run_graph(graph, feeds)[0], before, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("c = Conv(x, w) y = Sub(k, c)", (4, 1, 1)),
        ("c = Conv(x, w) y = Div(k, c)", (4, 1, 1)),
        ("c = Conv(x, w) y = Mul(c, k)", (3, 3)),
        ("c = Conv(x, w) y = Mul(c, k)", (4, 3, 1)),
    ],
)
def test_other_constants_stay(context: Context, body: str, shape: tuple[int, ...]) -> None:
    graph = graph_of(body, "1,3,5,5", "1,4,3,3", w=array(4, 3, 3, 3), k=array(*shape))
    fuse_batchnorm(graph, context)
    assert len(graph) == 2


def test_a_result_that_others_read_too_stays(context: Context) -> None:
    body = "c = Conv(x, w) d = Mul(c, k) y = Add(c, d)"
    graph = graph_of(body, "1,3,5,5", "1,4,3,3", w=array(4, 3, 3, 3), k=array(4, 1, 1))
    fuse_batchnorm(graph, context)
    assert len(graph) == 3


@pytest.mark.parametrize(("limit", "left"), [(100, 4), (1 << 20, 3)])
def test_small_weights_of_two_are_stored_twice(context: Context, limit: int, left: int) -> None:
    body = "c = Conv(x, w) e = Conv <pads = [0,0,0,0]> (x, w) d = Mul(c, k) y = Add(e, d)"
    graph = graph_of(body, "1,3,5,5", "1,4,3,3", w=array(4, 3, 3, 3), k=array(4, 1, 1))
    fuse_batchnorm(graph, replace(context, fold_limit=limit))
    assert len(graph) == left


BEFORE = {
    "normalization": ("c = BatchNormalization(x, s, b, m, v) y = Conv(c, w, d)", "2,4,5,5", "2,6,3,3", (6, 4, 3, 3)),
    "normalization, groups": (
        "c = BatchNormalization(x, s, b, m, v) y = Conv <group = 2> (c, w, d)", "2,4,5,5", "2,6,3,3", (6, 2, 3, 3)
    ),
    "gemm": ("c = BatchNormalization(x, s, b, m, v) y = Gemm <alpha = 0.5> (c, w, d)", "3,4", "3,6", (4, 6)),
    "gemm, turned": (
        "c = BatchNormalization(x, s, b, m, v) y = Gemm <transB = 1, beta = 2.0> (c, w, d)", "3,4", "3,6", (6, 4)
    ),
    "factor and edges": ("c = Mul(x, k) y = Conv <pads = [1,1,1,1]> (c, w, d)", "2,4,5,5", "2,6,5,5", (6, 4, 3, 3)),
    "divisor": ("c = Div(x, k) y = Conv(c, w, d)", "2,4,5,5", "2,6,3,3", (6, 4, 3, 3)),
    "offset": ("c = Sub(x, k) y = Conv(c, w, d)", "2,4,5,5", "2,6,3,3", (6, 4, 3, 3)),
}  # fmt: skip


@pytest.mark.parametrize("case", BEFORE)
def test_what_comes_before_goes_into_the_weights(context: Context, case: str) -> None:
    body, x, y, shape = BEFORE[case]
    arrays = statistics(4) | {"w": array(*shape), "d": array(6), "k": array(4, 1, 1) + 3}
    graph = graph_of(body, x, y, **{name: a for name, a in arrays.items() if re.search(rf"\b{name}\b[,)]", body)})
    feeds = {"x": array(*map(int, x.split(",")))}
    (before,) = run_graph(graph, feeds)
    fuse_batchnorm(graph, context)
    verify(graph)
    assert len(graph) == 1
    np.testing.assert_allclose(run_graph(graph, feeds)[0], before, rtol=1e-4, atol=1e-4)


def test_an_offset_before_padding_stays(context: Context) -> None:
    body = "c = Add(x, k) y = Conv <pads = [1,1,1,1]> (c, w)"
    graph = graph_of(body, "2,4,5,5", "2,6,5,5", w=array(6, 4, 3, 3), k=array(4, 1, 1))
    fuse_batchnorm(graph, context)
    assert len(graph) == 2


def test_a_normalization_by_itself_is_a_factor_and_an_offset(context: Context) -> None:
    graph = graph_of("y = BatchNormalization(x, s, b, m, v)", "2,4,5,5", "2,4,5,5", **statistics(4))
    feeds = {"x": array(2, 4, 5, 5)}
    (before,) = run_graph(graph, feeds)
    fuse_batchnorm(graph, context)
    assert [node.op.name for node in graph.nodes] == ["Mul", "Add"]
    np.testing.assert_allclose(outputs(lower(graph), feeds)["y"], before, rtol=1e-4, atol=1e-4)


def test_a_normalization_per_element_is_one_too(context: Context) -> None:
    ins = "float[2,4,5] x, float[4,5] s, float[4,5] b, float[4,5] m, float[4,5] v"
    head = f'<ir_version: 8, opset_import: ["" : 7]> g ({ins})'
    model = parser.parse_model(f"{head} => (float[2,4,5] y) {{ y = BatchNormalization <spatial = 0> (x, s, b, m, v) }}")
    given = {name: np.abs(array(4, 5)) + 0.5 for name in "sbmv"}
    model.graph.initializer.extend(numpy_helper.from_array(given[name], name) for name in given)
    del model.graph.input[1:]
    graph, feeds = load_proto(model), {"x": array(2, 4, 5)}
    expected = (feeds["x"] - given["m"]) / np.sqrt(given["v"] + 1e-5) * given["s"] + given["b"]
    fuse_batchnorm(graph, context)
    assert [node.op.name for node in graph.nodes] == ["Mul", "Add"]
    np.testing.assert_allclose(outputs(lower(graph), feeds)["y"], expected, rtol=1e-4, atol=1e-4)


def test_what_would_overflow_stays(context: Context) -> None:
    zero = np.zeros((4, 1, 1), np.float32)
    graph = graph_of("c = Conv(x, w) y = Div(c, k)", "1,3,5,5", "1,4,3,3", w=array(4, 3, 3, 3), k=zero)
    fuse_batchnorm(graph, context)
    assert len(graph) == 2


def test_a_chain_ends_in_one_convolution(check: Any) -> None:
    w, one, two = np.ones((2, 1, 1, 1), np.float32), np.float32([[[1]], [[3]]]), np.float32([[[2]], [[4]]])
    check(
        fuse_batchnorm,
        """
        input %x: f32[1,1,2,2]
        const %w: f32[2,1,1,1] = #w
        const %two: f32[2,1,1] = #two
        const %one: f32[2,1,1] = #one
        %a: f32[1,2,2,2] = Conv(%x, %w) from "a"
        %b: f32[1,2,2,2] = Mul(%a, %two) from "b"
        %y: f32[1,2,2,2] = Add(%b, %one) from "y"
        output %y
        """,
        """
        input %x: f32[1,1,2,2]
        const %"a/weights": f32[2,1,1,1] = #scaled
        const %"b/bias": f32[2] = #bias
        %y: f32[1,2,2,2] = Conv(%x, %"a/weights", %"b/bias") from "a", "b", "y"
        output %y
        """,
        w=w,
        one=one,
        two=two,
        scaled=np.float32([2, 4]).reshape(2, 1, 1, 1),
        bias=np.float32([1, 3]),
    )
