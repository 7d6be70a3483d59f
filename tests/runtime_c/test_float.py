"""Minima, remainders, ties and casts of floats agree with numpy, NaN, infinities and signed zeros included."""

from __future__ import annotations

import math
import platform
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.discovery import data_folder

TYPES = {"f32": np.float32, "f64": np.float64}
INTEGERS = [f"{kind[0]}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)]
SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    -7.25,
    1e30,
    -1e30,
    1e-40,
    math.inf,
    -math.inf,
    math.nan,
]


def _pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([*SPECIAL, *np.random.default_rng(1).normal(0, 10, 40)], TYPES[name])
    grid = np.meshgrid(values, values)
    return grid[0].reshape(-1), grid[1].reshape(-1)


def _same(actual: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(actual, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(actual[numbers]), np.signbit(expected[numbers]), "sign of zero")


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("function", ["min", "max"])
def test_minimum_and_maximum_propagate_nan(runtime: Any, function: str, name: str) -> None:
    a, b = _pairs(name)
    expected = {"min": np.minimum, "max": np.maximum}[function](a, b)
    np.testing.assert_array_equal(runtime(f"{function}_{name}", a, b), expected)


@pytest.mark.skipif(shutil.which("gcc") is None or platform.machine() != "x86_64", reason="asks gcc for x86-64")
@pytest.mark.parametrize("function", ["min", "max"])
def test_an_instruction_chooses_one_of_two_numbers(tmp_path: Path, function: str) -> None:
    """Branches on random numbers are mispredicted half of the time."""
    text = f"float f(float a, float b);\nfloat f(float a, float b) {{ return mcc_{function}_f32(a, b); }}\n"
    assert f"{function}ss" in _assembly(text, tmp_path)


@pytest.mark.skipif(shutil.which("gcc") is None or platform.machine() != "x86_64", reason="asks gcc for x86-64")
@pytest.mark.parametrize(("name", "instruction"), [("f32", "roundss"), ("f64", "roundsd")])
def test_an_instruction_rounds(tmp_path: Path, name: str, instruction: str) -> None:
    """Whether a half is rounded up depends on data, too."""
    kind = {"f32": "float", "f64": "double"}[name]
    found = _assembly(
        f"{kind} f({kind} a);\n{kind} f({kind} a) {{ return mcc_round_even_{name}(a); }}\n", tmp_path, "-msse4.1"
    )
    assert instruction in found and "\tj" not in found


def _assembly(text: str, folder: Path, *flags: str) -> str:
    (folder / "f.c").write_text(f'#include "mcc_float.h"\n{text}')
    include = f"-I{data_folder('runtime_c') / 'include'}"
    command = ["gcc", "-O2", *flags, "-S", "-o", "-", include, str(folder / "f.c")]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("function", ["mod", "fmod"])
def test_remainder(runtime: Any, function: str, name: str) -> None:
    a, b = _pairs(name)
    with np.errstate(all="ignore"):
        # numpy gives NaN for a remainder by infinity of the other sign; ONNX defines it, as Python does
        expected = (
            np.fmod(a, b) if function == "fmod" else np.array([_floor_mod(x, y) for x, y in zip(a, b, strict=True)])
        )
    _same(runtime(f"{function}_{name}", a, b), expected.astype(a.dtype))


def _floor_mod(x: Any, y: Any) -> Any:
    if np.isnan(x) or np.isnan(y) or np.isinf(x) or y == 0:
        return math.nan
    if np.isinf(y):
        return math.copysign(0, y) if x == 0 else x if (x < 0) == (y < 0) else y
    return np.mod(x, y)


@pytest.mark.parametrize("name", TYPES)
def test_round_half_to_even(runtime: Any, name: str) -> None:
    dtype = TYPES[name]
    halves = np.arange(-1000, 1000, dtype=dtype) / 4
    edges = [
        dtype(limit + step) for limit in (2.0**22, 2.0**23, 2.0**31, 2.0**51, 2.0**52) for step in (-0.5, 0, 0.5, 1)
    ]
    near = [np.nextafter(dtype(half), dtype(to)) for half in (0.5, 1.5, 2.5) for to in (-9, 9)]
    values = np.array([*halves, *edges, *near, *SPECIAL], dtype)
    values = np.concatenate([values, -values])
    _same(runtime(f"round_even_{name}", values), np.rint(values))
    if name == "f32":
        _same(runtime("lane_round_even_f32", values), np.rint(values))


@pytest.mark.parametrize("name", TYPES)
def test_sign(runtime: Any, name: str) -> None:
    values = np.array(SPECIAL, TYPES[name])
    np.testing.assert_array_equal(runtime(f"sign_{name}", values), np.sign(values))


@pytest.mark.parametrize("name", TYPES)
def test_erf(runtime: Any, name: str) -> None:
    values = np.linspace(-4, 4, 101).astype(TYPES[name])
    expected = np.array([math.erf(value) for value in values])
    np.testing.assert_allclose(runtime(f"erf_{name}", values), expected, rtol=1e-6)


@pytest.mark.parametrize("name", TYPES)
def test_to_bool(runtime: Any, name: str) -> None:
    values = np.array(SPECIAL, TYPES[name])
    np.testing.assert_array_equal(runtime(f"{name}_to_bool", values, dtype=np.uint8), values != 0)


@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("name", TYPES)
def test_casts_round_toward_zero_and_wrap(runtime: Any, name: str, target: str) -> None:
    dtype = TYPES[name]
    integer = np.dtype({"i": "int", "u": "uint"}[target[0]] + target[1:])
    powers = [sign * 2.0**power + step for power in range(65) for sign in (-1, 1) for step in (-1, -0.5, 0, 0.5, 1)]
    values = np.array([*SPECIAL, *powers, *np.random.default_rng(2).normal(0, 1e5, 200)], dtype)
    expected = np.array([_cast(float(value), integer) for value in values], integer)
    np.testing.assert_array_equal(runtime(f"{name}_to_{target}", values, dtype=integer), expected)


@pytest.mark.parametrize("target", ["i8", "u8", "i16", "u16"])
def test_numbers_are_rounded_and_saturate(runtime: Any, target: str) -> None:
    integer = np.dtype({"i": "int", "u": "uint"}[target[0]] + target[1:])
    values, zeros = near_cases(integer)
    expected = near(values, zeros, integer)
    np.testing.assert_array_equal(runtime(f"f32_near_{target}", values, zeros, dtype=integer), expected)


def near_cases(integer: np.dtype[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Ties and their neighbours, numbers around the ends, and what is not a number; with zeros from end to end."""
    low, high = (int(end) for end in (np.iinfo(integer).min, np.iinfo(integer).max))
    ends = [
        sign * (power + step / 2)
        for power in (high - low, 2**17, 2**18, 2**31)
        for sign in (1, -1)
        for step in range(-3, 4)
    ]
    ties = np.array([*(np.arange(-600, 600) / 4), *ends, *SPECIAL], np.float32)
    values = np.concatenate([ties, np.nextafter(ties, np.float32(9e9)), np.nextafter(ties, np.float32(-9e9))])
    zeros = np.array([low, low // 2, 0, 3, high], np.int32)
    return np.tile(values, len(zeros)), np.repeat(zeros, len(values))


def near(values: np.ndarray, zeros: np.ndarray, integer: np.dtype[Any]) -> np.ndarray:
    numbers = ~np.isnan(values)
    whole = np.rint(np.where(numbers, values, 0).astype(np.float64)) + zeros
    limits = np.iinfo(integer)
    return np.where(numbers, np.clip(whole, limits.min, limits.max), 0).astype(integer)


def _cast(value: float, integer: np.dtype[Any]) -> int:
    """What an x86 conversion gives: the low bits of a 32-bit or 64-bit signed result, or of its smallest value."""
    bits = 8 * integer.itemsize
    word = max(bits, 32)
    whole = math.trunc(value) if math.isfinite(value) else None
    if integer.kind == "u" and bits == word and value >= 2.0 ** (word - 1):
        return whole if whole is not None and whole < 1 << word else 0
    if whole is None or not -(1 << (word - 1)) <= whole < 1 << (word - 1):
        whole = -(1 << (word - 1))
    whole &= (1 << bits) - 1
    return whole - (1 << bits) if integer.kind == "i" and whole >> (bits - 1) else whole
