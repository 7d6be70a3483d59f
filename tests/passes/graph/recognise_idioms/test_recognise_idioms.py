"""Every spelling becomes the operator, and computes what the spelling did."""

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
from mccompile.passes.graph.eliminate_common_subexpressions import eliminate_common_subexpressions
from mccompile.passes.graph.eliminate_dead import eliminate_dead
from mccompile.passes.graph.recognise_idioms.recognise_idioms import recognise_idioms
from mccompile.passes.lower import lower
from tests.passes.program.interpreter import outputs

NORM = "LayerNormalization"
NUMBERS = {
    "half": 0.5, "one": 1.0, "two": [2.0], "three": 3.0, "zero": 0.0, "six": 6.0, "sixth": 1 / 6, "root": 2**0.5,
    "down": 0.70710677, "cubic": 0.044715, "bend": [[0.7978845608]], "a": 1.702, "eps": 1e-5, "minus": -0.5,
}  # fmt: skip
INTS = {"last": [-1], "first": 0, "second": 1, "rows": [2], "columns": [-1], "picture": [-1, 2], "channels": [1, 2]}
SHAPES = {
    "pairs": (6, 2, 16), "halves": (2, 2, 3, 4, 4),
    "flat": (1, 6, 16), "flat_cut": (1, 2, 3, 16),
    "cut": (1, 2, 3, 4, 4), "same": (1, 6, 4, 4), "blocks": (1, 6, 2, 2, 2, 2), "deep": (1, 24, 2, 2),
    "up": (1, 2, 2, 6, 2, 2), "wide": (1, 6, 4, 4), "crd": (1, 6, 2, 2, 2, 2),
}  # fmt: skip


def graph_of(body: str, x: str = "2,3,8", y: str = "2,3,8") -> Graph:
    text = f'<ir_version: 9, opset_import: ["" : 18]>\ng (float[{x}] x) => (float[{y}] y) {{ {body} }}'
    model = parser.parse_model(text)
    chance = np.random.default_rng(1)
    arrays = {name: np.array(value, np.float32) for name, value in NUMBERS.items()}
    arrays |= {name: np.array(value, np.int64) for name, value in (INTS | SHAPES).items()}
    arrays |= {name: chance.standard_normal(8).astype(np.float32) for name in ("gamma", "beta")}
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(a, n) for n, a in arrays.items() if n in used)
    return load_proto(model)


def operators(graph: Graph, context: Context) -> str:
    eliminate_common_subexpressions(graph, context)
    recognise_idioms(graph, context)
    eliminate_dead(graph, context)
    verify(graph, "recognise_idioms")
    return " ".join(node.op.name for node in graph.nodes)


ERF = "d = Div(x, root) e = Erf(d) g = Add(e, one)"
TANH = "t = Tanh(i) g = Add(one, t)"
CUBE = "x2 = Mul(x, x) x3 = Mul(x, x2) c = Mul(cubic, x3) s = Add(c, x) i = Mul(s, bend)"
POW = "x3 = Pow(x, three) c = Mul(x3, cubic) s = Add(x, c) i = Mul(bend, s)"
FAST = "x2 = Mul(x, x) c = Mul(x2, cubic) s = Add(c, one) b = Mul(x, bend) i = Mul(b, s)"
GATE = "p = Add(three, x) q = Clip(p, zero, six)"
SIGN = "n = Neg(x) e = Exp(n) d = Add(one, e)"
MEAN = "m = ReduceMean(x, last) d = Sub(x, m)"
VAR = f"{MEAN} q = Mul(d, d) v = ReduceMean(q, last) w = Add(v, eps)"
RMS = "q = Pow(x, two) v = ReduceMean(q, last) w = Add(eps, v)"
SUM = "s = ReduceSum(e, last)"
SPELLINGS = {
    "gelu half first": (f"{ERF} h = Mul(x, half) y = Mul(h, g)", "Gelu"),
    "gelu half last": (f"{ERF} h = Mul(g, x) y = Mul(half, h)", "Gelu"),
    "gelu divided by two": (f"{ERF} h = Mul(x, g) y = Div(h, two)", "Gelu"),
    "gelu gate halved": ("d = Mul(x, down) e = Erf(d) g = Add(one, e) h = Mul(g, half) y = Mul(h, x)", "Gelu"),
    "gelu tanh": (f"{CUBE} {TANH} h = Mul(x, half) y = Mul(h, g)", "Gelu"),
    "gelu tanh by powers": (f"{POW} {TANH} h = Mul(half, x) y = Mul(g, h)", "Gelu"),
    "gelu tanh factored": (f"{FAST} {TANH} h = Mul(x, half) y = Mul(h, g)", "Gelu"),
    "hard swish": (f"{GATE} m = Mul(x, q) y = Div(m, six)", "HardSwish"),
    "hard swish by a factor": (f"{GATE} m = Mul(q, sixth) y = Mul(x, m)", "HardSwish"),
    "hard swish of min": ("p = Add(x, three) r = Relu(p) q = Min(r, six) m = Mul(x, q) y = Div(m, six)", "HardSwish"),
    "hard swish of hard sigmoid": ("h = HardSigmoid <alpha = 0.16666667> (x) y = Mul(h, x)", "HardSwish"),
    "hard sigmoid": (f"{GATE} y = Div(q, six)", "HardSigmoid"),
    "silu": ("s = Sigmoid(x) y = Mul(x, s)", "Swish"),
    "silu scaled": ("n = Mul(a, x) s = Sigmoid(n) y = Mul(s, x)", "Swish"),
    "silu divided": (f"{SIGN} y = Div(x, d)", "Swish"),
    "softplus": ("e = Exp(x) p = Add(e, one) y = Log(p)", "Softplus"),
    "mish": ("s = Softplus(x) t = Tanh(s) y = Mul(x, t)", "Mish"),
    "mish from exp": ("e = Exp(x) p = Add(e, one) s = Log(p) t = Tanh(s) y = Mul(x, t)", "Mish"),
    "layer norm": (f"{VAR} s = Sqrt(w) z = Div(d, s) k = Mul(z, gamma) y = Add(beta, k)", NORM),
    "layer norm by power": (f"{VAR} s = Pow(w, minus) z = Mul(d, s) k = Mul(gamma, z) y = Add(k, beta)", NORM),
    "layer norm without scale": (f"{VAR} s = Sqrt(w) y = Div(d, s)", NORM),
    "layer norm of different differences": (
        f"{MEAN} d2 = Sub(x, m) q = Pow(d2, two) v = ReduceMean(q, last) w = Add(v, eps) s = Sqrt(w) y = Div(d, s)",
        NORM,
    ),
    "rms norm": (f"{RMS} s = Sqrt(w) r = Div(x, s) y = Mul(gamma, r)", "RMSNormalization"),
    "length": ("q = Mul(x, x) s = ReduceSum <keepdims = 1> (q, last) n = Sqrt(s) y = Div(x, n)", "ReduceL2 Div"),
    "length by power": ("q = Pow(x, two) s = ReduceSum(q, last) n = Sqrt(s) y = Div(x, n)", "ReduceL2 Div"),
    "squares": ("q = Mul(x, x) s = ReduceSum(q, last) y = Add(x, s)", "ReduceSumSquare Add"),
    "softmax": (
        f"m = ReduceMax(x, last) d = Sub(x, m) e = Exp(d) {SUM} y = Div(e, s)",
        "Softmax",
    ),
    "softmax without a maximum": (f"e = Exp(x) {SUM} y = Div(e, s)", "Softmax"),
    "layer norm by a factor": (
        f"{VAR} s = Sqrt(w) r = Reciprocal(s) f = Mul(r, gamma)"
        " scaled = Mul(x, f) mean = Mul(m, f) rest = Sub(beta, mean) y = Add(scaled, rest)",
        NORM,
    ),
    "rms norm by reciprocal": (f"{RMS} s = Sqrt(w) r = Reciprocal(s) y = Mul(x, r)", "RMSNormalization"),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_spelling_becomes_its_operator(spelling: str, context: Context) -> None:
    body, expected = SPELLINGS[spelling]
    graph = graph_of(body)
    chance = np.random.default_rng(0).uniform(-4, 4, (2, 3, 8)).astype(np.float32)
    before = outputs(lower(copy.deepcopy(graph)), {"x": chance})["y"]
    assert operators(graph, context) == expected
    np.testing.assert_allclose(outputs(lower(graph), {"x": chance})["y"], before, rtol=1e-4, atol=1e-5)


MEANS = {
    "of pictures": ("y = ReduceMean(x, picture)", "1,6,1,1", "GlobalAveragePool"),
    "of rows, then of columns": ("m = ReduceMean(x, rows) y = ReduceMean(m, columns)", "1,6,1,1", "GlobalAveragePool"),
    "without its axes": ("y = ReduceMean <keepdims = 0> (x, picture)", "1,6", "GlobalAveragePool Reshape"),
    "of flat pictures": (
        "f = Reshape(x, flat) y = ReduceMean <keepdims = 0> (f, columns)",
        "1,6",
        "GlobalAveragePool Reshape",
    ),
    "of channels and rows": ("y = ReduceMean(x, channels)", "1,1,1,4", "ReduceMean"),
}


@pytest.mark.parametrize("mean", MEANS)
def test_a_mean_of_pictures_becomes_a_pool(mean: str, context: Context) -> None:
    body, y, expected = MEANS[mean]
    graph = graph_of(body, "1,6,4,4", y)
    array = np.random.default_rng(0).uniform(-4, 4, (1, 6, 4, 4)).astype(np.float32)
    before = outputs(lower(copy.deepcopy(graph)), {"x": array})["y"]
    assert operators(graph, context) == expected
    np.testing.assert_allclose(outputs(lower(graph), {"x": array})["y"], before, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "body",
    [
        "d = Div(x, two) e = Erf(d) g = Add(e, one) h = Mul(x, half) y = Mul(h, g)",
        f"{ERF} h = Mul(x, half) k = Mul(h, g) y = Add(k, e)",
        f"{GATE} m = Mul(x, q) y = Div(m, three)",
        "h = HardSigmoid(x) y = Mul(h, x)",
        "s = Sigmoid(x) m = Mul(x, s) y = Add(m, s)",
        f"{VAR} s = Sqrt(w) y = Div(x, s)",
        "m = ReduceMean(x, last) q = Mul(x, x) v = ReduceMean(q, last) w = Add(v, one) s = Sqrt(w) y = Div(x, s)",
    ],
)  # fmt: skip
def test_what_only_looks_alike_stays(body: str, context: Context) -> None:
    graph = graph_of(body)
    before = {node.op.name for node in graph.nodes}
    assert set(operators(graph, context).split()) <= before


def test_groups_normalized_in_another_shape_are_a_group_normalization(check: Any) -> None:
    check(
        recognise_idioms,
        """
        input %x: f32[2,6,4,4]
        const %cut: i64[3] = #cut
        const %whole: i64[4] = #whole
        const %scale: f32[3] = #scale
        const %bias: f32[3] = #bias
        %c: f32[2,3,32] = Reshape(%x, %cut) from "c"
        %n: f32[2,3,32] = InstanceNormalization(%c, %scale, %bias) {epsilon=0.5} from "n"
        %y: f32[2,6,4,4] = Reshape(%n, %whole) from "y"
        output %y
        """,
        """
        input %x: f32[2,6,4,4]
        const %"n/scale": f32[6] = #scales
        const %"n/bias": f32[6] = #biases
        %y: f32[2,6,4,4] = GroupNormalization(%x, %"n/scale", %"n/bias") {num_groups=3, epsilon=0.5} from "c", "n", "y"
        output %y
        """,
        cut=np.array([2, 3, -1]),
        whole=np.array([2, 6, 4, 4]),
        scale=np.array([1, 2, 3], np.float32),
        bias=np.array([4, 5, 6], np.float32),
        scales=np.array([1, 1, 2, 2, 3, 3], np.float32),
        biases=np.array([4, 4, 5, 5, 6, 6], np.float32),
    )


def test_a_normalization_takes_its_scale_and_bias(check: Any) -> None:
    check(
        recognise_idioms,
        """
        input %x: f32[2,8]
        const %axes: i64[1] = #axes
        const %two: f32[] = #two
        const %eps: f32[] = #eps
        const %gamma: f32[8] = #gamma
        %m: f32[2,1] = ReduceMean(%x, %axes) from "m"
        %d: f32[2,8] = Sub(%x, %m) from "d"
        %q: f32[2,8] = Pow(%d, %two) from "q"
        %v: f32[2,1] = ReduceMean(%q, %axes) from "v"
        %e: f32[2,1] = Add(%v, %eps) from "e"
        %s: f32[2,1] = Sqrt(%e) from "s"
        %n: f32[2,8] = Div(%d, %s) from "n"
        %k: f32[2,8] = Mul(%n, %gamma) from "k"
        %y: f32[2,8] = Add(%k, %gamma) from "y"
        output %y
        """,
        """
        fact "eps is 0.0009765625"
        fact "two is 2"
        input %x: f32[2,8]
        const %gamma: f32[8] = #gamma
        %y: f32[2,8] = LayerNormalization(%x, %gamma, %gamma) {axis=1, epsilon=0.0009765625} from PROVENANCE
        output %y
        """.replace("PROVENANCE", '"m", "d", "q", "v", "e", "s", "n", "k", "y"'),
        axes=np.array([-1]),
        two=np.float32(2),
        eps=np.float32(2**-10),
        gamma=np.arange(8, dtype=np.float32),
    )


def test_the_numbers_looked_at_are_recorded(context: Context) -> None:
    graph = graph_of(SPELLINGS["gelu half first"][0])
    operators(graph, context)
    assert set(graph.assumptions) == {"root is 1.41421", "one is 1", "half is 0.5"}
