"""The C of expressions keeps their structure and their types."""

from __future__ import annotations

import pytest

from mccompile.base.dtypes import DTYPES, DType, bool_, f16, f32, i8
from mccompile.base.marked import plain
from mccompile.expr.ir import Expr, apply, cast, literal, operand, substitute
from mccompile.expr.scalar_c import load_c, store_c, to_statements

X, Y = operand(0, f32), operand(1, f32)
I4, F4 = DTYPES["i4"], DTYPES["f4e2m1"]


def c(expr: Expr) -> str:
    return plain(to_statements(expr, ["x[i]", "y[i]"])[1])


def test_a_sum_that_ends_in_parentheses_is_still_a_sum() -> None:
    total = apply("add", X, apply("mul", Y, literal(2, f32)))
    assert c(apply("mul", literal(3, f32), total)) == "3.0f * (x[i] + (y[i] * 2.0f))"


def test_a_sum_of_calls_is_still_a_sum() -> None:
    total = apply("add", apply("exp", X), apply("exp", Y))
    assert c(apply("mul", total, literal(3, f32))) == "(expf(x[i]) + expf(y[i])) * 3.0f"


def test_what_is_used_twice_is_computed_once() -> None:
    twice = apply("exp", X)
    lines, value = to_statements(apply("mul", twice, twice), ["x[i]"])
    assert list(map(plain, (*lines, value))) == ["const float t0 = expf(x[i]);", "t0 * t0"]


def test_conditions_are_not_cast_to_what_stores_them() -> None:
    less = apply("less", X, Y)
    assert c(less) == "(uint8_t)(x[i] < y[i])"
    assert c(apply("not", less)) == "(uint8_t)(!(x[i] < y[i]))"
    assert c(cast(apply("not", less), f32)) == "(float)(!(x[i] < y[i]))"
    assert c(apply("select", less, X, Y)) == "(t0 < t1) ? t0 : t1"


def test_narrow_floats_are_rounded_after_every_operation() -> None:
    half = operand(0, f16)
    assert c(apply("add", half, half)).startswith("mcc_f16_to_f32(mcc_f32_to_f16(")


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        (f32, bool_, "(uint8_t)(x[i] != 0)"),
        (f32, i8, "mcc_f32_to_i8(x[i])"),
        (f32, I4, "(int8_t)((int)(((uint64_t)(mcc_f32_to_i32(x[i])) & 15u) ^ 8u) - 8)"),
        (i8, f32, "(float)(x[i])"),
    ],
)
def test_casts(source: DType, target: DType, text: str) -> None:
    assert c(cast(operand(0, source), target)) == text


def test_packed_floats_are_codes_in_memory() -> None:
    assert plain(load_c(F4, "x", "i")) == "mcc_f4e2m1_to_f32(mcc_load_u4(x, i))"
    assert plain(store_c(F4, "y", "i", "v")) == "mcc_store_u4(y, i, mcc_f32_to_f4e2m1(v));"


@pytest.mark.parametrize(("function", "text"), [("less", "0"), ("equal", "1"), ("greater_equal", "1")])
def test_an_integer_is_not_compared_with_itself(function: str, text: str) -> None:
    total = apply("add", operand(0, i8), operand(1, i8))
    assert c(apply(function, total, total)) == text
    assert c(substitute(apply(function, operand(0, i8), operand(1, i8)), [total, total])) == text


def test_a_float_is_compared_with_itself_because_of_nan() -> None:
    assert c(apply("equal", X, X)) == "(uint8_t)(t0 == t0)"


@pytest.mark.parametrize(
    ("zero", "text"),
    [(cast(operand(1, i8), f32), "mcc_f32_near_i8(x[i], y[i])"), (None, "mcc_f32_near_i8(x[i], INT32_C(0))")],
)
def test_rounding_with_saturation_is_one_function(zero: Expr | None, text: str) -> None:
    assert c(saturated(zero, 127)) == text


@pytest.mark.parametrize(("zero", "high"), [(operand(1, f32), 127), (None, 126)])
def test_other_zeros_and_ends_are_not(zero: Expr | None, high: int) -> None:
    assert "near" not in c(saturated(zero, high))


def saturated(zero: Expr | None, high: int) -> Expr:
    whole = apply("round_even", X)
    whole = apply("add", whole, zero) if zero else whole
    return cast(apply("max", apply("min", whole, literal(high, f32)), literal(-128, f32)), i8)
