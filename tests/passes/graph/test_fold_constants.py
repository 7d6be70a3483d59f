from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from onnx import parser

from mccompile.base.budgets import limited
from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import load_proto
from mccompile.frontend.save import to_onnx
from mccompile.graph.ir import Graph
from mccompile.passes.api import Context
from mccompile.passes.graph.fold_constants import fold_constants, fold_dequantized

HEAD = '<ir_version: 9, opset_import: ["" : 17]>\n'


def graph_of(text: str) -> Graph:
    return load_proto(parser.parse_model(HEAD + text))


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def check_folded(check: Any, value: str, made: str, run: Any = fold_constants, **arrays: Any) -> None:
    """`value`, such as `w: f32[3]`, which `made` computes from constants and which is then added to the input, becomes
    the constant of its name."""
    name, type = value.split(": ")
    added = f'%y: {type} = Add(%x, %{name}) from "y"\noutput %y'
    before = f"input %x: {type}\n{made}\n{added}"
    check(run, before, f"input %x: {type}\nconst %{value} = #{name}\n{added}", **arrays)


def test_a_chain_of_constants_becomes_one(check: Any) -> None:
    check_folded(
        check,
        "c: f32[2]",
        """
        const %a: f32[2] = #a
        %b: f32[2] = Neg(%a) from "b"
        %c: f32[2] = Mul(%b, %a) from "c"
        """,
        a=f32(2, 3),
        c=f32(-4, -9),
    )


def test_shape_arithmetic_becomes_constants_though_its_operand_is_none(check: Any) -> None:
    check(
        fold_constants,
        """
        input %x: f32[2,3,4]
        const %at: i64[1] = #at
        const %six: i64[1] = #six
        %s: i64[3] = Shape(%x) from "s"
        %n: i64[1] = Gather(%s, %at) from "n"
        %t: i64[2] = Concat(%n, %six) {axis=0} from "t"
        %y: f32[4,6] = Reshape(%x, %t) from "y"
        output %y
        """,
        """
        input %x: f32[2,3,4]
        const %t: i64[2] = #t
        %y: f32[4,6] = Reshape(%x, %t) from "y"
        output %y
        """,
        at=np.array([2]),
        six=np.array([6]),
        t=np.array([4, 6]),
    )


def test_an_output_keeps_its_name(check: Any) -> None:
    check(
        fold_constants,
        """
        const %a: f32[2] = #a
        %y: f32[2] = Neg(%a) from "y"
        output %y
        """,
        """
        const %y: f32[2] = #b
        output %y
        """,
        a=f32(2, 3),
        b=f32(-2, -3),
    )


def test_what_the_evaluator_computes_wrong_stays(context: Context) -> None:
    """Its LpNormalization divides by the sum of elements, not of their magnitudes."""
    text = "g (float[1,4] x) => (float[1,4] y) <float[1,4] w = {1, -1, 2, -1}>"
    graph = graph_of(f"{text} {{ n = LpNormalization<axis = 1, p = 1>(w) y = Add(x, n) }}")
    fold_constants(graph, context)
    assert [node.op.name for node in graph.nodes] == ["LpNormalization", "Add"]


def test_what_would_add_too_much_to_the_weights_stays(context: Context) -> None:
    text = """g (float[1] x) => (float[2000000] y) <float[1] one = {1}, int64[1] n = {2000000}> {
        w = Expand(one, n)
        y = Add(x, w)
    }"""
    graph = graph_of(text)
    fold_constants(graph, context)
    assert [node.op.name for node in graph.nodes] == ["Expand", "Add"]
    fold_constants(graph, replace(context, fold_limit=10_000_000))
    assert [node.op.name for node in graph.nodes] == ["Add"]


def test_a_product_is_rounded_once(check: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 300), (300, 7)))
    exact = np.array([[sum((row.astype(float) * column).tolist()) for column in b.T] for row in a])
    check_folded(
        check,
        "m: f32[5,7]",
        """
        const %a: f32[5,300] = #a
        const %b: f32[300,7] = #b
        %m: f32[5,7] = MatMul(%a, %b) from "m"
        """,
        a=a,
        b=b,
        m=exact.astype(np.float32),
    )


def test_a_transcendental_function_is_computed_in_double(check: Any) -> None:
    a = np.linspace(-3, 3, 100).astype(np.float32)
    made = 'const %a: f32[100] = #a\n%t: f32[100] = Tanh(%a) from "t"'
    check_folded(check, "t: f32[100]", made, a=a, t=np.tanh(a.astype(np.float64)).astype(np.float32))


DEQUANTIZED = """
        const %q: i8[3] = #q
        const %s: f32[] = #s
        %w: f32[3] = DequantizeLinear(%q, %s) from "w"
        """
QUANTIZED = {"q": np.array([-128, 0, 3], np.int8), "s": np.float32(0.5)}


def test_what_is_left_of_quantized_weights_becomes_floats(check: Any) -> None:
    check_folded(check, "w: f32[3]", DEQUANTIZED, fold_dequantized, w=f32(-64, 0, 1.5), **QUANTIZED)


def test_quantized_weights_stay_for_integer_operators(check: Any) -> None:
    text = f'input %x: f32[3]\n{DEQUANTIZED}\n%y: f32[3] = Mul(%x, %w) from "y"\noutput %y'
    check(fold_constants, text, text, **QUANTIZED)


@pytest.mark.parametrize("double", ["Concat <axis = 0> (c{0}, c{0})", "Tile(c{0}, two)"])
def test_constants_that_double_are_refused_by_the_node(double: str, context: Context) -> None:
    lines = " ".join(f"[n{n}] c{n + 1} = {double.format(n)}" for n in range(30))
    graph = graph_of(
        "g (float[1] x) => (float[1] y) <float[1] c0 = {1}, int64[1] two = {2}> "
        f"{{ {lines} m = ReduceSum(c30) y = Add(x, m) }}"
    )
    with limited(folded=1 << 12), pytest.raises(UnsupportedModel, match=r'(?s)constants grow too large.*"n9"'):
        fold_constants(graph, context)


def test_what_cannot_be_written_as_onnx_is_not_evaluated(context: Context) -> None:
    """Only the class knows the attributes of these: `norm` would be MAX."""
    text = '<ir_version: 9, opset_import: ["" : 17, "ai.onnx.ml" : 3]> g (float[1,2] x) => (float[1,2] y)'
    body = '<float[1,2] w = {3, 4}> { n = ai.onnx.ml.Normalizer <norm = "L2"> (w) y = Add(x, n) }'
    graph = load_proto(parser.parse_model(text + body))
    fold_constants(graph, context)
    assert [node.op.name for node in graph.nodes] == ["Normalizer", "Add"]
    with pytest.raises(UnsupportedModel, match="attributes have become operands"):
        to_onnx(graph)
