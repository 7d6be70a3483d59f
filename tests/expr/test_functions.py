"""The meaning of scalar functions in numpy, at the ends of their ranges; and which types they take."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest

from mccompile.base.dtypes import DTYPES, DType, bool_, f32, f64, i8, i32, i64, u8, u64
from mccompile.expr.functions import FUNCTIONS, Function

STRING = DTYPES["string"]
TINY = 2.0**-126  # the smallest normal number
NUMBERS = [1.0, 1.25, 1.5, 1.75, -3.0, TINY, TINY / 2, TINY * 0.75, TINY / 4, 0.0, 2.0**127, 1.5 * 2.0**127]
DOWN = [1.0, 1.0, 1.0, 1.0, 2.0, TINY, TINY / 2, TINY / 2, TINY / 2, TINY / 2, 2.0**127, 2.0**127]
UP = [1.0, 2.0, 2.0, 2.0, 4.0, TINY, TINY, TINY, TINY, TINY / 2, 2.0**127, math.inf]
NEAREST = [1.0, 1.0, 2.0, 2.0, 4.0, TINY, TINY / 2, TINY, TINY / 2, TINY / 2, 2.0**127, math.inf]


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_spelling_names_every_argument(function: Function) -> None:
    for spelling in (function.c_float, function.c_int):
        if isinstance(spelling, str):
            assert {int(place) for place in re.findall(r"\{(\d)\}", spelling)} == set(range(function.arity))


@pytest.mark.parametrize(("name", "found"), [("down", DOWN), ("up", UP), ("nearest", NEAREST)])
def test_powers_of_two(name: str, found: list[float]) -> None:
    x = np.array(NUMBERS, np.float32)
    assert FUNCTIONS[f"power_{name}_wrap"].numpy(x).tolist() == found
    saturated = [min(number, 2.0**127) for number in found]
    assert FUNCTIONS[f"power_{name}"].numpy(x).tolist() == saturated
    assert np.isnan(FUNCTIONS[f"power_{name}"].numpy(np.array([np.nan, np.inf, -np.inf], np.float32))).all()


def test_quotients_are_cut_off_and_by_zero_are_zero() -> None:
    a, b = np.array([7, -7, 7, -7, 6, 5, 0], np.int8), np.array([2, 2, -2, -2, 3, 0, 0], np.int8)
    found = FUNCTIONS["div"].numpy(a, b)
    assert (found.tolist(), found.dtype) == ([3, -3, -3, 3, 2, 0, 0], np.int8)
    assert FUNCTIONS["div"].numpy(np.float32(7), np.float32(2)) == 3.5


def test_quotients_of_the_smallest_number_are_cut_off() -> None:
    """Its magnitude is not a number of the type."""
    smallest = np.full(3, -128, np.int8)
    assert FUNCTIONS["div"].numpy(smallest, np.array([3, -3, 2], np.int8)).tolist() == [-42, 42, -64]


def test_shifts_by_all_bits_or_more_are_zero() -> None:
    a, b = np.array([0x81] * 5, np.uint8), np.array([0, 1, 7, 8, 200], np.uint8)
    assert FUNCTIONS["shift_left"].numpy(a, b).tolist() == [0x81, 2, 0x80, 0, 0]
    assert FUNCTIONS["shift_right"].numpy(a, b).tolist() == [0x81, 0x40, 1, 0, 0]
    wide = np.array([1] * 3, np.uint32)
    assert FUNCTIONS["shift_left"].numpy(wide, np.array([8, 31, 32], np.uint32)).tolist() == [256, 1 << 31, 0]


def test_the_error_function_keeps_its_type() -> None:
    found = FUNCTIONS["erf"].numpy(np.array([0.5, -2.0], np.float32))
    assert found.dtype == np.float32
    assert found.tolist() == [np.float32(math.erf(0.5)), np.float32(math.erf(-2.0))]


TERMS = [-(1 << 31), -65537, -3, -1, 0, 1, 65535, (1 << 31) - 1]
FACTORS = [-(1 << 31), -5, 0, 1, 1 << 20, (1 << 31) - 1]
MULTIPLIERS = [0, 1, (1 << 31) + 5, (1 << 32) - 1, 1 << 32, (1 << 62) + 12345]


def test_the_upper_half_of_a_product_is_rounded_down_and_added() -> None:
    for a in TERMS:
        for b in FACTORS:
            found = FUNCTIONS["high_sum"].numpy(np.int32(9), np.int32(a), np.int32(b))
            assert (found, found.dtype) == (9 + (a * b >> 32), np.int32)


def test_products_keep_all_bits_above_the_point() -> None:
    for term in TERMS:
        for multiplier in MULTIPLIERS:
            assert FUNCTIONS["fixed_product"].numpy(np.int32(term), np.int64(multiplier)) == term * multiplier >> 32


@pytest.mark.parametrize("bits", [1, 3, 40])
def test_a_rest_near_zero_is_a_half_where_halves_occur(bits: int) -> None:
    for whole in (-4, -3, -1, 0, 1, 2, 7):
        for rest in (rest for rest in (0, 1, 3, 4, 5) if rest < 1 << bits):
            total = np.int64((whole << bits) + rest)
            assert FUNCTIONS["fixed_round"].numpy(total, np.uint8(bits)) == whole
            even = whole - (whole & 1) if rest <= 3 else whole
            assert FUNCTIONS["fixed_round"].numpy(total, np.uint8(bits + 64)) == even


def test_saturation_ends_at_the_ends_of_bytes() -> None:
    x = np.array([-1000, -129, -128, -1, 0, 127, 128, 255, 256], np.int32)
    assert FUNCTIONS["saturate_i8"].numpy(x).tolist() == [-128, -128, -128, -1, 0, 127, 127, 127, 127]
    assert FUNCTIONS["saturate_u8"].numpy(x).tolist() == [0, 0, 0, 0, 0, 127, 128, 255, 255]


@pytest.mark.parametrize(
    ("name", "types", "result"),
    [
        ("add", (f32, f32), f32),
        ("add", (i8, i8), i8),
        ("less", (i8, i8), bool_),
        ("is_nan", (f64,), bool_),
        ("and", (bool_, bool_), bool_),
        ("equal", (STRING, STRING), bool_),
        ("select", (bool_, i8, i8), i8),
        ("select", (bool_, STRING, STRING), STRING),
        ("high_sum", (i32, i32, i32), i32),
        ("fixed_product", (i32, i64), i64),
        ("fixed_round", (i64, u8), i32),
        ("shift_even", (i32, i32), i32),
        ("saturate_i8", (i32,), i32),
        ("exp_whole", (u64,), f64),
    ],
)
def test_the_type_of_a_result(name: str, types: tuple[DType, ...], result: DType) -> None:
    assert FUNCTIONS[name].result(types) is result


@pytest.mark.parametrize(
    ("name", "types", "complaint"),
    [
        ("add", (f32,), "takes 2 arguments"),
        ("add", (f32, f32, f32), "takes 2 arguments"),
        ("add", (f32, f64), "arguments of one type"),
        ("add", (f64, f32), "arguments of one type"),
        ("add", (STRING, STRING), "not defined for this type"),
        ("sqrt", (i8,), "not defined for this type"),
        ("bit_and", (f32, f32), "not defined for this type"),
        ("select", (i8, i8, i8), "a bool and two of one type"),
        ("select", (bool_, i8, f32), "a bool and two of one type"),
        ("fixed_round", (i32, u8), "takes i64 and u8"),
    ],
)
def test_types_that_a_function_does_not_take(name: str, types: tuple[DType, ...], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        FUNCTIONS[name].result(types)
