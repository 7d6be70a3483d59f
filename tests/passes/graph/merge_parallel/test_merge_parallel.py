"""Convolutions over one input: added up, or side by side, they become one and give the same."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.graph.verify import verify
from mccompile.kernels.registry import Registry
from mccompile.passes.api import Context
from mccompile.passes.graph.clean_up import clean_up
from mccompile.passes.graph.merge_parallel.merge_parallel import merge_parallel
from mccompile.passes.lower import lower
from mccompile.targets import api as targets
from tests.passes.program.interpreter import outputs

SHAPES = {"w3": (4, 4, 3, 3), "w1": (4, 4, 1, 1), "v1": (4, 4, 1, 1), "w8": (8, 4, 3, 3), "d3": (4, 1, 3, 3),
          "b": (4,), "k": (4, 1, 1), "few": (3, 4, 1, 1), "less": (2, 4, 1, 1), "many": (40, 4, 1, 1),
          "wide": (4, 4, 3, 5), "columns": (6, 3), "pillars": (6, 2),
          "pair3": (2, 4, 3, 3), "half": (2, 4, 1, 1)}  # fmt: skip
SAME = "<pads = [1,1,1,1]>"


def graph_of(body: str, y: str = "1,4,6,6") -> Graph:
    text = f'<ir_version: 9, opset_import: ["" : 18]>\ng (float[1,4,6,6] x) => (float[{y}] y) {{ {body} }}'
    model = parser.parse_model(text)
    chance = np.random.default_rng(1)
    arrays = {name: chance.standard_normal(shape).astype(np.float32) for name, shape in SHAPES.items()}
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items() if n in used)
    return load_proto(model)


def merged(graph: Graph, context: Context) -> list[str]:
    """The operators that are left, after a look at the results."""
    x = np.random.default_rng(0).standard_normal((1, 4, 6, 6)).astype(np.float32)
    before = outputs(lower(copy.deepcopy(graph)), {"x": x})["y"]
    merge_parallel(graph, context)
    verify(graph, "merge_parallel")
    np.testing.assert_allclose(outputs(lower(graph), {"x": x})["y"], before, rtol=1e-4, atol=1e-4)
    return [node.op.name for node in graph.nodes]


@pytest.mark.parametrize(
    "body",
    [
        f"a = Conv{SAME}(x, w3) c = Conv(x, w1) y = Add(a, c)",
        f"a = Conv{SAME}(x, w3, b) c = Conv(x, w1, b) y = Add(c, a)",
        "a = Conv<pads = [1,2,1,2]>(x, wide) c = Conv<pads = [1,1,1,1]>(x, w3) y = Add(a, c)",
        "a = Conv<pads = [2,2,2,2], dilations = [2,2]>(x, w3) c = Conv(x, w1) y = Add(a, c)",
        f"a = Conv{SAME}(x, w3, b) y = Add(x, a)",
        "a = Conv<pads = [1,1,1,1], group = 4>(x, d3) y = Add(a, x)",
        f"a = Conv{SAME}(x, w3) c = Mul(x, k) y = Add(c, a)",
        f"a = Conv{SAME}(x, w3) c = Conv(x, w1) d = Add(a, c) y = Add(d, x)",
        f"a = Conv{SAME}(x, w8) c, d = Split<axis = 1>(a) y = Add(c, d)",
    ],
)
def test_a_sum_of_convolutions_is_one(body: str, context: Context) -> None:
    assert merged(graph_of(body), context) == ["Conv"]


@pytest.mark.parametrize(
    "body",
    [
        f"a = Conv{SAME}(x, w3) r = Relu(a) c = Conv(r, w1) y = Add(a, c)",
        f"a = Conv{SAME}(x, w3) c = Conv<pads = [0,0,2,2]>(x, w3) y = Add(a, c)",
        "a = Conv<pads = [1,1,1,1]>(x, w3) c = Conv<pads = [2,2,2,2], dilations = [2,2]>(x, w3) y = Add(a, c)",
        f"a = Conv{SAME}(x, w3) c = Conv(x, w1) d = Add(a, c) y = Add(d, a)",
    ],
)
def test_what_is_no_sum_over_one_input_stays(body: str, context: Context) -> None:
    graph = graph_of(body)
    before = [node.op.name for node in graph.nodes]
    assert merged(graph, context) == before


TWO_KERNELS = """
        input %x: f32[1,1,4]
        const %three: f32[1,1,3] = #three
        const %one: f32[1,1,1] = #one
        const %b: f32[1] = #b
        """
KERNELS = {
    "three": np.array([[[1, 2, 3]]], np.float32),
    "one": np.array([[[10]]], np.float32),
    "b": np.array([5], np.float32),
}


def test_the_smaller_kernel_is_enlarged(check: Any) -> None:
    check(
        merge_parallel,
        TWO_KERNELS
        + """
        %a: f32[1,1,4] = Conv(%x, %three) {pads=(1, 1)} from "a"
        %c: f32[1,1,4] = Conv(%x, %one, %b) from "c"
        %y: f32[1,1,4] = Add(%a, %c) from "y"
        output %y
        """,
        """
        input %x: f32[1,1,4]
        const %"y/weights": f32[1,1,3] = #sum
        const %"y/bias": f32[1] = #b
        %y: f32[1,1,4] = Conv(%x, %"y/weights", %"y/bias") {ATTRIBUTES} from "c", "a", "y"
        output %y
        """.replace("ATTRIBUTES", "dilations=(1,), pads=(1, 1), strides=(1,)"),
        **KERNELS,
        sum=np.array([[[1, 12, 3]]], np.float32),
    )


def test_few_results_each_are_computed_together(context: Context) -> None:
    body = "a = Conv(x, few) r = Relu(a) e = Exp(r) c = Conv(x, less) s = Relu(c) f = Exp(s) y = Concat<axis = 1>(e, f)"
    assert merged(graph_of(body, "1,5,6,6"), context) == ["Conv", "Relu", "Split", "Exp", "Exp", "Concat"]


def test_products_with_few_columns_are_computed_together(context: Context) -> None:
    lanes = "a = MatMul(x, columns) r = Relu(a) e = Exp(r) c = MatMul(x, pillars) s = Relu(c) f = Exp(s)"
    left = merged(graph_of(f"{lanes} y = Concat<axis = 3>(e, f)", "1,4,6,5"), context)
    assert left == ["MatMul", "Relu", "Split", "Exp", "Exp", "Concat"]


def test_parts_that_are_joined_again_have_never_been_apart(context: Context) -> None:
    graph = graph_of("a = Conv(x, few) c = Conv(x, less) y = Concat<axis = 1>(a, c)", "1,5,6,6")
    assert merged(graph, context) == ["Conv", "Split", "Concat"]
    clean_up(graph, context)
    assert [node.op.name for node in graph.nodes] == ["Conv"]


VECTORS = Context(targets.load("x86-64-v3"), Registry.load(()))
BESIDE = f"a = Conv{SAME}(x, w3, b) c = Conv(x, less)"  # 4 and 2 results: room for both in the 8 computed at once


@pytest.mark.parametrize(
    "body",
    [
        f"{BESIDE} y = Concat<axis = 1>(c, a)",
        f"{BESIDE} r = Relu(a) s = Relu(c) y = Concat<axis = -3>(x, x, r, s)",
        f"{BESIDE} e = Exp(a) f = Exp(c) y = Concat<axis = 1>(f, e)",
        f"a = Conv<pads = [1,2,1,2]>(x, wide) c = Conv{SAME}(x, pair3) y = Concat<axis = 1>(a, c)",
        f"{BESIDE} d = Conv(x, half) y = Concat<axis = 1>(d, c, a)",
    ],
    ids=["joined", "joined between others", "read apart", "5x3 beside 3x3", "two beside one"],
)
def test_a_smaller_kernel_beside_a_larger_one_is_enlarged_where_results_are_computed_for_nothing(body: str) -> None:
    channels = 14 if "(x, x" in body else 8 if "half" in body else 6
    assert merged(graph_of(body, f"1,{channels},6,6"), VECTORS).count("Conv") == 1


@pytest.mark.parametrize(
    "body, channels",
    [
        (f"a = Conv{SAME}(x, w3, b) c = Conv(x, w1) d = Conv(x, less) y = Concat<axis = 1>(a, d, c)", 10),
        (f"a = Conv{SAME}(x, w8) c = Conv(x, less) y = Concat<axis = 1>(a, c)", 10),
        (f"{BESIDE} y = Concat<axis = 1>(a, x, c)", 10),
        (f"{BESIDE} s = Relu(c) y = Concat<axis = 1>(a, s)", 6),
    ],
    ids=["full without the third", "no room", "something between", "different activations"],
)
def test_what_does_not_pay_is_not_enlarged(body: str, channels: int) -> None:
    graph = graph_of(body, f"1,{channels},6,6")
    before = [node.op.name for node in graph.nodes].count("Conv")
    left = merged(graph, VECTORS).count("Conv")
    assert left == (2 if before == 3 else before)


def test_without_vectors_results_are_never_computed_for_nothing(context: Context) -> None:
    assert merged(graph_of(f"{BESIDE} y = Concat<axis = 1>(c, a)", "1,6,6,6"), context).count("Conv") == 2


def test_different_activations_stay_apart(context: Context) -> None:
    body = "a = Conv(x, few) e = Exp(a) f = Abs(e) c = Conv(x, less) s = Tanh(c) g = Abs(s) y = Concat<axis = 1>(f, g)"
    assert "Split" not in merged(graph_of(body, "1,5,6,6"), context)


def test_an_enlarged_kernel_lies_in_zeros(check: Any) -> None:
    check(
        merge_parallel,
        TWO_KERNELS
        + """
        %a: f32[1,1,4] = Conv(%x, %one, %b) from "a"
        %c: f32[1,1,4] = Conv(%x, %three) {pads=(1, 1)} from "c"
        %y: f32[1,2,4] = Concat(%a, %c) {axis=1} from "y"
        output %y
        """,
        """
        input %x: f32[1,1,4]
        const %"a+c/weights": f32[2,1,3] = #weights
        const %"a+c/bias": f32[2] = #bias
        const %"a+c/sizes": i64[2] = #sizes
        %"a+c": f32[1,2,4] = Conv(%x, %"a+c/weights", %"a+c/bias") {pads=(1, 1)} from "a", "c"
        %"a+c/part": f32[1,1,4], %"a+c/part_2": f32[1,1,4] = Split(%"a+c", %"a+c/sizes") {axis=1} from "a", "c"
        %y: f32[1,2,4] = Concat(%"a+c/part", %"a+c/part_2") {axis=1} from "y"
        output %y
        """,
        **KERNELS,
        weights=np.array([[[0, 10, 0]], [[1, 2, 3]]], np.float32),
        bias=np.array([5, 0], np.float32),
        sizes=np.array([1, 1]),
    )
