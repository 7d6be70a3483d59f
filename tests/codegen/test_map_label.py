"""Functions over elements are named by what they compute: not by the types of numbers, nor by bounds of rounding."""

from __future__ import annotations

import pytest

from mccompile.base.dtypes import f32, u8
from mccompile.codegen.map_label import map_label
from mccompile.expr.ir import Expr, apply, cast, literal, operand
from mccompile.kinds.map import Map
from mccompile.program.ir import Buffer, Call

X = operand(0, f32)
ROUNDED = apply("round_even", apply("div", X, operand(1, f32)))
QUANTIZED = cast(apply("max", apply("min", ROUNDED, literal(255, f32)), literal(0, f32)), u8)


@pytest.mark.parametrize(
    "expr, name",
    [
        (X, "copy"),
        (literal(0, f32), "fill"),
        (apply("max", X, literal(0, f32)), "map_max"),
        (apply("mul", apply("add", X, X), X), "map_mul_add"),
        (QUANTIZED, "quantize"),
    ],
    ids=str,
)
def test_a_name_says_what_is_computed(expr: Expr, name: str) -> None:
    views = [Buffer(each, f32, (4,)).whole() for each in ("x", "scale")]
    out = Buffer("y", expr.dtype, (4,)).whole()
    assert map_label(Call(Map(expr), tuple(views), (out,))) == name
