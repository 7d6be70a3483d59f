"""Expressions become C over vectors, or are refused with a reason."""

from __future__ import annotations

import math

import pytest

from mccompile.base.dtypes import SHORT, DType, bool_, f16, f32, i8, i16, i32, i64, u8
from mccompile.base.marked import plain
from mccompile.expr.ir import Expr, apply, cast, index, literal, operand
from mccompile.expr.vector_c import math_headers, refusal, stages, to_vector_statements, uses_math

X, Y, ZERO = operand(0, f32), operand(1, f32), literal(0, f32)
NEGATIVE = apply("less", X, ZERO)


def c(expr: Expr) -> str:
    return plain(to_vector_statements(expr, ["x", "y"], 8)[1])


def test_a_bound_that_is_a_number_takes_one_instruction_on_either_side() -> None:
    assert c(apply("max", X, ZERO)) == "mcc_at_least_f32x8(x, mcc_set_f32x8(0.0f))"
    assert c(apply("max", ZERO, X)) == "mcc_at_least_f32x8(x, mcc_set_f32x8(0.0f))"


def test_a_bound_that_may_be_nan_takes_the_careful_one() -> None:
    assert c(apply("max", X, Y)) == "mcc_max_f32x8(x, y)"
    assert c(apply("min", X, literal(math.nan, f32))).startswith("mcc_min_f32x8(")


def test_what_is_used_twice_is_computed_once() -> None:
    twice = apply("exp", X)
    lines, value = to_vector_statements(apply("mul", twice, twice), ["x"], 4)
    assert list(map(plain, (*lines, value))) == ["const mcc_f32x4 t0 = mcc_exp_f32x4(x);", "mcc_mul_f32x4(t0, t0)"]


def test_masks_used_twice_have_the_type_of_masks() -> None:
    both = apply("and", NEGATIVE, apply("not", NEGATIVE))
    lines, _ = to_vector_statements(apply("select", both, X, Y), ["x", "y"], 4)
    assert list(map(plain, lines)) == ["const mcc_i32x4 t0 = mcc_less_f32x4(x, mcc_set_f32x4(0.0f));"]


def clipped(low: int, high: int, dtype: DType = i8) -> Expr:
    return cast(apply("max", apply("min", X, literal(high, f32)), literal(low, f32)), dtype)


@pytest.mark.parametrize("expr", [clipped(-128, 127), clipped(0, 127), clipped(0, 255, u8)], ids=str)
def test_floats_within_bounds_are_stored_as_short_integers(expr: Expr) -> None:
    assert not refusal(expr, f32, SHORT)
    assert c(expr).startswith("mcc_at_least_f32x8(mcc_at_most_f32x8(x")


@pytest.mark.parametrize(
    "expr",
    [
        clipped(-129, 127),
        clipped(0, 128),
        clipped(-1, 255, u8),
        clipped(0, 1, i32),
        cast(X, i8),
        cast(apply("max", X, literal(math.nan, f32)), i8),
        apply("add", operand(0, i8), operand(1, i8)),
        cast(operand(0, i8), i16),
        cast(apply("sub", cast(operand(0, i32), i32), cast(operand(1, i8), i32)), f32),
        operand(0, i8),
    ],
    ids=str,
)
def test_integers_that_floats_may_not_hold_are_refused(expr: Expr) -> None:
    assert refusal(expr, f32, SHORT)


def test_sums_of_short_integers_are_floats() -> None:
    less = apply("sub", cast(operand(0, i16), i32), cast(operand(1, i8), i32))
    assert not refusal(cast(less, f32), f32, SHORT)
    assert c(cast(less, f32)) == "mcc_sub_f32x8(x, y)"


def test_numbers_that_are_short_integers_on_the_way_stay_floats() -> None:
    whole = apply("round_even", operand(0, f32))
    kept = cast(apply("max", apply("min", whole, literal(127, f32)), literal(-128, f32)), i8)
    less = apply("sub", cast(kept, i32), cast(operand(1, i8), i32))
    assert not refusal(apply("tanh", cast(less, f32)), f32, SHORT)
    cut = cast(apply("max", apply("min", operand(0, f32), literal(9.5, f32)), literal(0, f32)), i8)
    shifted = apply("add", whole, cast(operand(1, i8), f32))
    moved = cast(apply("max", apply("min", shifted, literal(127, f32)), literal(-128, f32)), i8)
    for expr in (kept, cut, moved):  # minus zero becomes zero, as an integer has none
        found = " ".join(to_vector_statements(cast(expr, f32), ["x", "y"], 8)[0])
        assert found.count("mcc_add_f32x8") == 1 and ("mcc_trunc_f32x8" in found) == (expr is cut)
    assert refusal(cast(cast(whole, i8), f32), f32, SHORT)  # it may not fit


@pytest.mark.parametrize("of", [*SHORT, i32, i64])
@pytest.mark.parametrize("to", [f32, f16])
def test_integers_become_floats_where_they_are_known(of: DType, to: DType) -> None:
    assert not refusal(cast(operand(0, of), to), f32, (f16, of))
    assert refusal(cast(operand(0, of), to), f32, (f16,))


def test_masks_and_floats_become_each_other_by_choices_and_comparisons() -> None:
    number, truth = cast(operand(0, bool_), f32), cast(X, bool_)
    assert refusal(number)
    assert not refusal(number, f32, (bool_,))
    assert c(number) == "mcc_select_f32x8(x, mcc_set_f32x8(1.0f), mcc_set_f32x8(0.0f))"
    assert c(apply("select", truth, X, Y)) == "mcc_select_f32x8(~mcc_equal_f32x8(x, mcc_set_f32x8(0.0f)), x, y)"


def test_truth_values_are_stored_where_bytes_are() -> None:
    assert not refusal(NEGATIVE, f32, SHORT)
    assert c(NEGATIVE).startswith("mcc_select_f32x8(mcc_less_f32x8(x, ")


@pytest.mark.parametrize(
    "expr",
    [
        operand(0, f16),
        cast(operand(0, i32), f32),
        cast(index(0), f32),
        apply("power_down", X),
        NEGATIVE,
        apply("select", apply("less", NEGATIVE, apply("not", NEGATIVE)), X, Y),
        apply("select", apply("select", NEGATIVE, NEGATIVE, NEGATIVE), X, Y),
    ],
    ids=str,
)
def test_what_vectors_cannot_do_is_refused(expr: Expr) -> None:
    assert refusal(expr)


def test_the_header_of_functions_is_asked_for_where_it_is_needed() -> None:
    assert uses_math(apply("add", X, apply("tanh", Y)))
    assert not uses_math(apply("add", X, apply("sqrt", Y)))
    both = [apply("exp", X), apply("pow", X, Y)]
    assert math_headers(both) == {"mcc_vecmath.h", "mcc_vecmath_wide.h"}
    assert math_headers(both[1:], f16) == {"mcc_vecmath_wide_half.h"}


def test_signs_and_tests_for_infinity_are_comparisons() -> None:
    infinite = apply("is_negative_inf", X)
    assert "mcc_equal_f32x8(x, mcc_set_f32x8(-" in plain(c(apply("select", infinite, X, Y)))
    assert c(apply("sign", X)).count("mcc_select_f32x8") == 3


def sigmoid(x: Expr) -> Expr:
    one = literal(1, f32)
    return apply("div", one, apply("add", one, apply("exp", apply("neg", x))))


def test_functions_that_wait_for_each_other_come_in_turns() -> None:
    one = literal(1, f32)
    assert stages(sigmoid(apply("tanh", sigmoid(apply("add", X, Y))))) == [
        sigmoid(apply("add", X, Y)),
        apply("neg", apply("tanh", X)),
        apply("div", one, apply("add", one, apply("exp", X))),
    ]


@pytest.mark.parametrize("expr", [sigmoid(X), apply("mul", X, sigmoid(apply("tanh", X))), apply("add", X, Y)])
def test_what_is_asked_for_twice_stays_in_one_turn(expr: Expr) -> None:
    assert stages(expr) == [expr]
