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
from mccompile.passes.api import Context
from mccompile.passes.graph.merge_parallel import merge_parallel
from mccompile.passes.lower import lower
from tests.passes.program.interpreter import outputs

SHAPES = {"w3": (4, 4, 3, 3), "w1": (4, 4, 1, 1), "v1": (4, 4, 1, 1), "w8": (8, 4, 3, 3), "d3": (4, 1, 3, 3),
          "b": (4,), "k": (4, 1, 1), "few": (3, 4, 1, 1), "less": (2, 4, 1, 1), "many": (40, 4, 1, 1),
          "wide": (4, 4, 3, 5), "columns": (6, 3), "pillars": (6, 2)}  # fmt: skip
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


def test_the_smaller_kernel_is_enlarged(check: Any) -> None:
    check(
        merge_parallel,
        """
        input %x: f32[1,1,4]
        const %three: f32[1,1,3] = #three
        const %one: f32[1,1,1] = #one
        const %b: f32[1] = #b
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
        three=np.array([[[1, 2, 3]]], np.float32),
        one=np.array([[[10]]], np.float32),
        b=np.array([5], np.float32),
        sum=np.array([[[1, 12, 3]]], np.float32),
    )


def test_few_results_each_are_computed_together(context: Context) -> None:
    body = "a = Conv(x, few) r = Relu(a) e = Exp(r) c = Conv(x, less) s = Relu(c) f = Exp(s) y = Concat<axis = 1>(e, f)"
    assert merged(graph_of(body, "1,5,6,6"), context) == ["Conv", "Relu", "Split", "Exp", "Exp", "Concat"]


def test_products_with_few_columns_are_computed_together(context: Context) -> None:
    lanes = "a = MatMul(x, columns) r = Relu(a) e = Exp(r) c = MatMul(x, pillars) s = Relu(c) f = Exp(s)"
    left = merged(graph_of(f"{lanes} y = Concat<axis = 3>(e, f)", "1,4,6,5"), context)
    assert left == ["MatMul", "Relu", "Split", "Exp", "Exp", "Concat"]


@pytest.mark.parametrize(
    "body",
    [
        "a = Conv(x, few) c = Conv(x, less) y = Concat<axis = 1>(a, c)",
        "a = Conv(x, few) e = Exp(a) f = Abs(e) c = Conv(x, less) s = Tanh(c) g = Abs(s) y = Concat<axis = 1>(f, g)",
    ],
    ids=["parts are needed in memory of their own", "different activations"],
)
def test_what_would_not_gain_stays_apart(body: str, context: Context) -> None:
    assert "Split" not in merged(graph_of(body, "1,5,6,6"), context)
