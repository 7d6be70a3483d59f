"""Narrow element types agree with numpy and ml_dtypes: every code read back, every neighbourhood of a tie rounded."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx.numpy_helper import saturate_cast

from tests.runtime_c.built import built

TYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
}
FLOAT8 = [name for name in TYPES if name.startswith("f8")]


def codes_of(name: str) -> np.ndarray:
    size = np.dtype(TYPES[name]).itemsize
    return np.arange(16 if name == "f4e2m1" else 1 << (8 * size)).astype(f"u{size}")


def _numbers(name: str) -> np.ndarray:
    """All finite numbers of a type in order, and at both ends the one that would follow; exact in float64."""
    with np.errstate(invalid="ignore"):
        numbers = codes_of(name).view(TYPES[name]).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    step = numbers[-1] - numbers[-2]
    return np.concatenate([[numbers[0] - step], numbers, [numbers[-1] + step]])


def _ties(name: str) -> np.ndarray:
    numbers = _numbers(name)
    return (numbers[1:] + numbers[:-1]) / 2


def floats_around(name: str) -> np.ndarray:
    exact = np.concatenate([_numbers(name), _ties(name)])
    with np.errstate(over="ignore"):
        exact = exact.astype(np.float32)
    huge = [np.finfo(np.float32).max, 1e30, 1e-30, 1e-45, math.inf, math.nan, 0.0]
    special = np.array([*huge, *(-value for value in huge)], np.float32)
    return np.concatenate([exact, np.nextafter(exact, np.float32(-9)), np.nextafter(exact, np.float32(9)), special])


def same_codes(actual: np.ndarray, expected: np.ndarray, name: str) -> None:
    """Equal bits, but any NaN is as good as another."""
    wanted = expected.view(actual.dtype)
    nans = np.isnan(expected.astype(np.float32)) & np.isnan(actual.view(TYPES[name]).astype(np.float32))
    np.testing.assert_array_equal(np.where(nans, 0, actual), np.where(nans, 0, wanted))


@pytest.mark.parametrize("name", TYPES)
def test_every_code_reads_as_its_number(runtime: Any, name: str) -> None:
    codes = codes_of(name)
    expected = codes.view(TYPES[name]).astype(np.float32)
    actual = runtime(f"{name}_to_f32", codes, dtype=np.float32)
    np.testing.assert_array_equal(actual, expected)
    np.testing.assert_array_equal(np.signbit(actual)[expected == 0], np.signbit(expected)[expected == 0])


def test_powers_of_two(runtime: Any) -> None:
    codes = np.arange(256).astype(np.uint8)
    expected = codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float32)
    np.testing.assert_array_equal(runtime("f8e8m0_to_f32", codes, dtype=np.float32), expected)
    np.testing.assert_array_equal(runtime("f32_to_f8e8m0", expected, dtype=np.uint8), codes)


@pytest.mark.parametrize("name", TYPES)
def test_floats_round_half_to_even(runtime: Any, name: str) -> None:
    values = floats_around(name)
    with np.errstate(all="ignore"):
        expected = values.astype(TYPES[name])
    same_codes(runtime(f"f32_to_{name}", values, dtype=codes_of(name).dtype), expected, name)


ROUNDED = """
#include "mcc_narrow.h"
void rounded(const float *x, uint16_t *y, ptrdiff_t n);
void rounded(const float *x, uint16_t *y, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; ++i) y[i] = mcc_f32_to_f16(x[i]);
}
"""


def test_f16_of_the_machine_round_half_to_even(tmp_path: Path) -> None:
    """With F16C or the like, where the machine that runs the tests has it."""
    source = tmp_path / "rounded.c"
    source.write_text(ROUNDED)
    library = built(source, tmp_path, "gcc", "void rounded(const float *x, uint16_t *y, ptrdiff_t n);", "-march=native")
    values = floats_around("f16")
    codes = np.empty(values.size, np.uint16)
    pointers = [
        library.ffi.cast(f"{of} *", array.ctypes.data) for of, array in (("float", values), ("uint16_t", codes))
    ]
    library.functions.rounded(*pointers, values.size)
    with np.errstate(over="ignore"):
        same_codes(codes, values.astype(np.float16), "f16")


@pytest.mark.parametrize("name", FLOAT8)
def test_saturation_ends_at_the_largest_number(runtime: Any, name: str) -> None:
    values = floats_around(name)
    expected = saturate_cast(values, np.dtype(TYPES[name]))
    same_codes(runtime(f"f32_to_{name}_sat", values, dtype=np.uint8), expected, name)
    same_codes(runtime(f"f64_to_{name}_sat", values.astype(np.float64), dtype=np.uint8), expected, name)


@pytest.mark.parametrize("name", TYPES)
def test_doubles_are_rounded_once(runtime: Any, name: str) -> None:
    numbers = _numbers(name)
    inside = slice(1, -1)  # what lies beyond the largest is tested with floats
    for to, expected in ((-math.inf, numbers[:-1]), (math.inf, numbers[1:])):
        values = np.nextafter(_ties(name), to)  # rounded to float first, this would become the tie itself
        actual = runtime(f"f64_to_{name}", values, dtype=codes_of(name).dtype)
        np.testing.assert_array_equal(actual.view(TYPES[name]).astype(np.float64)[inside], expected[inside])


@pytest.mark.parametrize("name", TYPES)
def test_doubles_agree_with_floats_where_those_are_exact(runtime: Any, name: str) -> None:
    values = floats_around(name)
    code = codes_of(name).dtype
    from_float = runtime(f"f32_to_{name}", values, dtype=code)
    np.testing.assert_array_equal(runtime(f"f64_to_{name}", values.astype(np.float64), dtype=code), from_float)


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_doubles_outside_the_range_of_float(runtime: Any, name: str) -> None:
    values = np.array([1e300, -1e300, 1e-300, -5e-324, -math.inf])
    expected = np.array([math.inf, -math.inf, 0.0, -0.0, -math.inf])
    actual = runtime(f"f64_to_{name}", values, dtype=np.uint16).view(TYPES[name]).astype(np.float64)
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize(("name", "bits"), [("u4", 4), ("i4", 4), ("u2", 2), ("i2", 2)])
def test_packed_elements_begin_in_the_low_bits(runtime: Any, name: str, bits: int) -> None:
    per_byte = 8 // bits
    packed = np.arange(256).astype(np.uint8)
    codes = [(int(byte) >> (bits * position)) % (1 << bits) for byte in packed for position in range(per_byte)]
    sign = 1 << (bits - 1)
    expected = [(code ^ sign) - sign for code in codes] if name[0] == "i" else codes
    element = np.int8 if name[0] == "i" else np.uint8
    unpacked = np.zeros(256 * per_byte, element)
    runtime(f"load_{name}", np.resize(packed, unpacked.size), dtype=element, out=unpacked)
    np.testing.assert_array_equal(unpacked, expected)

    stored = np.full(256, 0xA5, np.uint8)
    runtime(f"store_{name}", unpacked, out=stored)
    np.testing.assert_array_equal(stored, packed)


def test_a_packed_store_leaves_the_neighbour_alone(runtime: Any) -> None:
    stored = np.array([0x70], np.uint8)
    runtime("store_i4", np.array([-1], np.int8), out=stored)
    assert stored[0] == 0x7F
