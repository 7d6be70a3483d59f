"""Factors of operands become factors of the product; attentions of every spelling are the same three calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import numpy_helper, parser

from mccompile.frontend.load import load_proto
from mccompile.graph.ir import Graph
from mccompile.passes.api import Context
from mccompile.passes.graph.move_factors import LARGEST, move_factors
from mccompile.passes.lower import lower
from mccompile.passes.program.eliminate_dead_calls import eliminate_dead_calls
from mccompile.passes.program.fuse import fuse
from mccompile.passes.program.fuse_attention import fuse_attention
from mccompile.pipeline import GRAPH_PASSES
from tests.passes.program.interpreter import outputs

ROOT = 8**-0.25


def test_both_factors_of_scores_become_one(check: Any) -> None:
    """As both exporters of torch spell it: q and k are parts of one result, each scaled by a root."""
    check(
        move_factors,
        """
        input %q: f32[1,2,5,8]
        input %k: f32[1,2,5,8]
        input %mask: f32[5,5]
        const %root: f32[1] = #root
        %t: f32[1,2,8,5] = Transpose(%k) {perm=(0,1,3,2)} from "t"
        %a: f32[1,2,5,8] = Mul(%q, %root) from "a"
        %b: f32[1,2,8,5] = Mul(%root, %t) from "b"
        %p: f32[1,2,5,5] = MatMul(%a, %b) from "p"
        %m: f32[1,2,5,5] = Add(%p, %mask) from "m"
        %y: f32[1,2,5,5] = Softmax(%m) from "y"
        output %y
        """,
        """
        fact "root is not an extreme factor"
        input %q: f32[1,2,5,8]
        input %k: f32[1,2,5,8]
        input %mask: f32[5,5]
        const %"p/factor": f32[1] = #square
        %t: f32[1,2,8,5] = Transpose(%k) {perm=(0, 1, 3, 2)} from "t"
        %p_2_2: f32[1,2,5,5] = MatMul(%q, %t) from "b", "a", "p"
        %p: f32[1,2,5,5] = Mul(%p_2_2, %"p/factor") from "b", "a", "p"
        %m: f32[1,2,5,5] = Add(%p, %mask) from "m"
        %y: f32[1,2,5,5] = Softmax(%m) from "y"
        output %y
        """,
        root=np.array([ROOT], np.float32),
        square=np.array([float(np.float32(ROOT)) ** 2], np.float32),
    )


def scaled(number: float, inner: int = 8) -> Graph:
    """A product of x, scaled, where somebody else reads the unscaled x."""
    body = "q = Relu(x) z = Neg(q) a = Mul(q, s) p = MatMul(a, w) y = Add(p, z)"
    type = f"float[{inner},{inner}]"
    model = parser.parse_model(f'<ir_version: 9, opset_import: ["" : 18]> g ({type} x) => ({type} y) {{{body}}}')
    for name, array in (("s", np.float32(number)), ("w", np.ones((inner, inner), np.float32))):
        model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
    return load_proto(model)


def order(graph: Graph, context: Context) -> str:
    move_factors(graph, context)
    return " ".join(node.op.name for node in graph.nodes)


def test_a_factor_moves_only_where_it_costs_nothing_and_endangers_nothing(context: Context) -> None:
    assert order(scaled(0.5), context) == "Relu Neg MatMul Mul Add"
    stays = "Relu Neg Mul MatMul Add"
    assert order(scaled(2 * LARGEST), context) == stays
    assert order(scaled(float("nan")), context) == stays
    assert order(scaled(0.0), context) == stays
    assert order(scaled(0.5, inner=3), context) == stays


def test_a_factor_stays_where_its_operand_takes_it(context: Context) -> None:
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> g (float[4,8] x, float[8,8] v, float[8,8] w) => (float[4,8] y)'
        " { q = MatMul(x, v) a = Mul(q, s) y = MatMul(a, w) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(np.float32(0.5), "s"))
    assert order(load_proto(model), context) == "MatMul Mul MatMul"


@pytest.mark.parametrize(
    ("divisor", "readers", "expected"),
    [
        (8.0, "y = Floor(d)", "Mul Floor"),  # exact
        (-0.25, "y = Identity(d)", "Mul Identity"),
        (3.0, "y = Erf(d)", "Mul Erf"),
        (3.0, "y = Floor(d)", "Div Floor"),  # 3 / 3 must not become less than 1
        (3.0, "e = Erf(d) f = Floor(d) y = Add(e, f)", "Div Erf Floor Add"),
        (2 * LARGEST, "y = Erf(d)", "Div Erf"),  # the reciprocal could lose bits
    ],
)
def test_division_by_a_number_is_a_product_where_no_rounding_shows(
    divisor: float, readers: str, expected: str, context: Context
) -> None:
    model = parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> g (float[4] x) => (float[4] y) {{ d = Div(x, s) {readers} }}'
    )
    model.graph.initializer.append(numpy_helper.from_array(np.float32(divisor), "s"))
    graph = load_proto(model)
    assert order(graph, context) == expected
    factors = [float(v.constant.array) for n in graph.nodes if n.op.name == "Mul" for v in n.inputs if v and v.constant]
    assert factors in ([], [np.float32(1 / divisor)])


def test_an_output_is_divided_as_the_model_says(context: Context) -> None:
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 18]> g (float[4] x) => (float[4] d, float[4] y)'
        " { d = Div(x, s) y = Erf(d) }"
    )
    model.graph.initializer.append(numpy_helper.from_array(np.float32(3), "s"))
    assert order(load_proto(model), context) == "Div Erf"


PARTS = "q, k, v = Split <axis = -1, num_outputs = 3> (x)"
HEADS = "qh = Reshape(q, heads) kh = Reshape(k, heads) vh = Reshape(v, heads) vt = Transpose <perm = [0,2,1,3]> (vh)"
TURNED = "qt = Transpose <perm = [0,2,1,3]> (qh) kt = Transpose <perm = [0,2,3,1]> (kh)"
EXPORTED = """
    kp = Transpose <perm = [0,2,1,3]> (kh) kf = Reshape(kp, flat)
    kg = Transpose <perm = [0,2,1]> (kf) kt = Reshape(kg, keys) qt = Transpose <perm = [0,2,1,3]> (qh)
"""
ROOTS = "qs = Mul(qt, root) ks = Mul(kt, root) s = MatMul(qs, ks)"
END = "p = Softmax(m) y = MatMul(p, vt)"
SPELLINGS = {
    "torchscript": f"{TURNED} {ROOTS} m = Add(s, mask) {END}",
    "torch.export": f"{EXPORTED} {ROOTS} m = Add(s, mask) {END}",
    "not a number where all is masked": (
        f"{TURNED} {ROOTS} m = Add(s, mask) p = Softmax(m) n = IsNaN(p) o = Where(n, zero, p) y = MatMul(o, vt)"
    ),
    "scaled afterwards": f"{TURNED} s = MatMul(qt, kt) t = Mul(s, scale) m = Add(t, mask) {END}",
    "divided afterwards": f"{TURNED} s = MatMul(qt, kt) t = Div(s, divisor) m = Add(mask, t) {END}",
    "queries divided": f"{TURNED} qs = Div(qt, divisor) s = MatMul(qs, kt) m = Add(s, mask) {END}",
    "keys scaled": f"{TURNED} ks = Mul(scale, kt) s = MatMul(qt, ks) m = Add(s, mask) {END}",
    "masked by a choice": f"{TURNED} {ROOTS} m = Where(seen, s, low) {END}",
    "no mask": f"{TURNED} {ROOTS} p = Softmax(s) y = MatMul(p, vt)",
    "the operator": (
        "kp = Transpose <perm = [0,2,1,3]> (kh) qt = Transpose <perm = [0,2,1,3]> (qh) y = Attention(qt, kp, vt)"
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_attention_is_three_calls_however_it_is_spelled(spelling: str, context: Context) -> None:
    body = f"x = MatMul(input, w) {PARTS} {HEADS} {SPELLINGS[spelling]}"
    model = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 23]> g (float[1,5,6] input) => (float[1,2,5,8] y) {{ {body} }}'
    )
    arrays = {
        "w": np.random.default_rng(2).standard_normal((6, 48)).astype(np.float32),
        "heads": np.array([1, 5, 2, 8]), "flat": np.array([2, 5, 8]), "keys": np.array([1, 2, 8, 5]),
        "root": np.array([ROOT], np.float32), "scale": np.float32(8**-0.5), "divisor": np.float32(8**0.5),
        "mask": np.triu(np.full((5, 5), -1e9, np.float32), 1), "low": np.float32(-1e9), "zero": np.float32(0),
        "seen": np.tril(np.ones((5, 5), bool)),
    }  # fmt: skip
    used = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), n) for n, a in arrays.items() if n in used)
    feeds = {"input": np.random.default_rng(3).standard_normal((1, 5, 6)).astype(np.float32)}
    before = outputs(lower(load_proto(model)), feeds)["y"]
    graph = load_proto(model)
    for step in GRAPH_PASSES:
        step.run(graph, context)
    program = lower(graph)
    eliminate_dead_calls(program, context)
    fuse(program, context)
    assert [type(call.kind).__name__ for call in program.calls()] == ["Gemm", "Gemm", "Normalize", "Gemm"]
    fuse_attention(program, context)
    assert [type(call.kind).__name__ for call in program.calls()] == ["Gemm", "Attention"]
    np.testing.assert_allclose(outputs(program, feeds)["y"], before, rtol=1e-5, atol=1e-6)
