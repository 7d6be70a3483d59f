"""Floats rounded to integers of 8 and 16 bits, as QuantizeLinear does: one function of mcc_float.h, which need not
branch."""

from __future__ import annotations

from ..base.dtypes import f32, i8, i16, i32, u8, u16
from .ir import Apply, Cast, Expr, Literal, literal

_WIDEST = 16  # bits of zero


def nearest(expr: Expr) -> tuple[Expr, Expr, list[Expr]] | None:
    """x and zero of saturate(round(x) + zero), and the steps between that nobody needs then."""
    match expr:
        case Cast(dtype, Apply(_, "max", (Apply(_, "min", (whole, Literal(_, high))), Literal(_, low)))):
            if dtype not in (i8, u8, i16, u16) or (low, high) != (dtype.low, dtype.high):
                return None
            between = [expr.argument, *expr.argument.args[:1], whole]
        case _:
            return None
    match whole:
        case Apply(_, "round_even", (x,)) if x.dtype is f32:
            return x, literal(0, i32), between
        case Apply(_, "add", (Apply(_, "round_even", (x,)) as rounded, Cast(_, zero))):
            if x.dtype is f32 and zero.dtype.is_integer and zero.dtype.bits <= _WIDEST:
                return x, zero, [*between, rounded]
    return None
