"""Epilogues of sums become C over vectors of integers, or are refused with a reason."""

from __future__ import annotations

import pytest

from mccompile.base.dtypes import f32, i8, i32, i64, u8
from mccompile.base.marked import plain
from mccompile.expr import integer_vector_c
from mccompile.expr.integer_vector_c import integer_refusal, to_integer_statements
from mccompile.expr.ir import Expr, apply, cast, literal, operand

SUM, TABLE = operand(0, i32), operand(1, i32)
ROUNDED = apply("shift_right", apply("high_sum", TABLE, SUM, TABLE), literal(4, i32))


def c(expr: Expr) -> list[str]:
    return list(map(plain, to_integer_statements(expr, ["s", "t"], 8, "mcc_store_{0}(y, {1});")))


def test_saturation_is_left_to_the_store() -> None:
    expr = cast(apply("saturate_u8", apply("add", SUM, TABLE)), u8)
    assert c(expr) == ["mcc_store_saturated_u8_i32x8(y, mcc_add_i32x8(s, t));"]


def test_tighter_bounds_are_computed_and_the_low_bytes_stored() -> None:
    bounded = apply("min", apply("max", SUM, literal(-3, i32)), literal(90, i32))
    (line,) = c(cast(bounded, i8))
    assert line.startswith("mcc_store_i8_i32x8(y, mcc_min_i32x8(mcc_max_i32x8(s, mcc_set_i32x8(INT32_C(-3)))")


def test_what_is_used_twice_is_computed_once() -> None:
    lines = c(cast(apply("saturate_i8", apply("mul", ROUNDED, ROUNDED)), i8))
    assert lines[0].startswith("const mcc_i32x8 t0 = mcc_shift_right_i32x8(mcc_high_sum_i32x8(t, s, t), 4);")
    assert lines[1] == "mcc_store_saturated_i8_i32x8(y, mcc_mul_i32x8(t0, t0));"


def test_shifts_that_make_halves_even_have_a_form_of_their_own() -> None:
    (line,) = c(cast(apply("saturate_i8", apply("shift_even", SUM, literal(4, i32))), i8))
    assert line == "mcc_store_saturated_i8_i32x8(y, mcc_shift_even_i32x8(s, 4));"


def test_integers_may_become_floats() -> None:
    expr = apply("mul", cast(apply("sub", SUM, TABLE), f32), literal(0.5, f32))
    assert integer_refusal(expr) == ""
    assert c(expr) == ["mcc_store_f32x8(y, mcc_mul_f32x8(mcc_i32_to_f32x8(mcc_sub_i32x8(s, t)), mcc_set_f32x8(0.5f)));"]


def test_bytes_that_would_wrap_are_refused() -> None:
    assert "not wrapped" in integer_refusal(cast(apply("add", SUM, TABLE), u8))
    assert "not wrapped" in integer_refusal(cast(cast(apply("saturate_i8", SUM), i8), u8))
    assert integer_refusal(cast(apply("saturate_u8", SUM), u8)) == ""


def test_bytes_of_floats_of_integers_are_cast_at_the_end() -> None:
    quotient = apply("div", cast(apply("sub", SUM, TABLE), f32), literal(3.0, f32))
    (line,) = c(cast(apply("max", apply("min", quotient, literal(9.0, f32)), literal(0.0, f32)), u8))
    assert line.startswith("mcc_store_u8_i32x8(y, mcc_f32_to_i32x8(mcc_at_least_f32x8(")
    assert "mcc_i32_to_f32x8(mcc_sub_i32x8(s, t))" in line


def test_bytes_that_floats_become_on_the_way_keep_their_low_bits() -> None:
    byte = cast(apply("mul", operand(0, f32), cast(operand(1, u8), f32)), i8)
    assert c(cast(apply("saturate_u8", apply("add", cast(byte, i32), TABLE)), u8)) == [
        "const mcc_i32x8 tb0 = mcc_f32_to_i32x8(mcc_mul_f32x8(s, mcc_i32_to_f32x8(t))) << 24 >> 24;",
        "mcc_store_saturated_u8_i32x8(y, mcc_add_i32x8(tb0, t));",
    ]


def test_functions_of_floats_are_called() -> None:
    assert c(apply("exp", cast(SUM, f32))) == ["mcc_store_f32x8(y, mcc_exp_f32x8(mcc_i32_to_f32x8(s)));"]


def test_what_has_no_vector_form_is_refused_with_its_reason() -> None:
    shifted = apply("shift_right", SUM, TABLE)
    assert "shifts by computed numbers" in integer_refusal(cast(apply("saturate_u8", shifted), u8))
    assert "not stored as i64" in integer_refusal(cast(SUM, i64))


def test_tiles_that_compute_the_same_expression_fill_one_form(monkeypatch: pytest.MonkeyPatch) -> None:
    expr = cast(apply("saturate_i8", apply("mul", ROUNDED, ROUNDED)), i8)
    first = c(expr)
    monkeypatch.setattr(integer_vector_c, "rebuild", None)  # what a second look at the expression would call
    at_other_places = to_integer_statements(expr, ["u", "v"], 8, "mcc_put_{0}(z, {1});", "w")
    assert first[0].startswith("const mcc_i32x8 t0 = mcc_shift_right_i32x8(mcc_high_sum_i32x8(t, s, t), 4);")
    assert plain(at_other_places[0]) == "const mcc_i32x8 w0 = mcc_shift_right_i32x8(mcc_high_sum_i32x8(v, u, v), 4);"
    assert plain(at_other_places[1]) == "mcc_put_saturated_i8_i32x8(z, mcc_mul_i32x8(w0, w0));"


def test_members_that_are_used_twice_get_names_and_names_do_not() -> None:
    expr = cast(apply("saturate_i8", apply("mul", SUM, SUM)), i8)
    assert c(expr) == ["mcc_store_saturated_i8_i32x8(y, mcc_mul_i32x8(s, s));"]
    lines = to_integer_statements(expr, ["four.v0"], 8, "mcc_store_{0}(y, {1});")
    assert list(map(plain, lines)) == [
        "const mcc_i32x8 t0 = four.v0;",
        "mcc_store_saturated_i8_i32x8(y, mcc_mul_i32x8(t0, t0));",
    ]


def test_expressions_that_differ_in_the_sign_of_zero_have_forms_of_their_own() -> None:
    zero, minus = (apply("mul", cast(SUM, f32), literal(value, f32)) for value in (0.0, -0.0))
    assert zero == minus
    assert c(zero) == ["mcc_store_f32x8(y, mcc_mul_f32x8(mcc_i32_to_f32x8(s), mcc_set_f32x8(0.0f)));"]
    assert c(minus) == ["mcc_store_f32x8(y, mcc_mul_f32x8(mcc_i32_to_f32x8(s), mcc_set_f32x8(-0.0f)));"]
