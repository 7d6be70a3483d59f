"""Integer arithmetic gives the ONNX result for every pair of operands; expected values come from Python's integers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

TYPES = {f"{kind[0]}{bits}": np.dtype(f"{kind}{bits}") for kind in ("int", "uint") for bits in (8, 16, 32, 64)}


def _trunc(a: int, b: int) -> int:
    return abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)


def _pow(a: int, b: int) -> int:
    if b < 0:
        return {1: 1, -1: -1 if b % 2 else 1}.get(a, 0)
    return pow(a, b, 1 << 64)  # the low 64 bits are enough for every type


def _wide(bits: int, b: int) -> bool:
    return not 0 <= b < bits


BINARY: dict[str, Callable[[int, int, int], int]] = {
    "add": lambda a, b, bits: a + b,
    "sub": lambda a, b, bits: a - b,
    "mul": lambda a, b, bits: a * b,
    "div": lambda a, b, bits: _trunc(a, b) if b else 0,
    "mod": lambda a, b, bits: a % b if b else 0,
    "fmod": lambda a, b, bits: a - _trunc(a, b) * b if b else 0,
    "pow": lambda a, b, bits: _pow(a, b),
    "shl": lambda a, b, bits: 0 if _wide(bits, b) else a << b,
    "shr": lambda a, b, bits: (-1 if a < 0 else 0) if _wide(bits, b) else a >> b,
    "min": lambda a, b, bits: min(a, b),
    "max": lambda a, b, bits: max(a, b),
}
UNARY: dict[str, Callable[[int], int]] = {
    "neg": lambda a: -a,
    "abs": abs,
    "sign": lambda a: (a > 0) - (a < 0),
}


def _wrapped(values: list[int], dtype: np.dtype[Any]) -> np.ndarray:
    mask = (1 << (8 * dtype.itemsize)) - 1
    return np.array([value & mask for value in values], f"u{dtype.itemsize}").view(dtype)


def _operands(dtype: np.dtype[Any], every_pair: bool) -> tuple[np.ndarray, np.ndarray]:
    info = np.iinfo(dtype)
    bits = 8 * dtype.itemsize
    values = {info.min, info.min + 1, -3, -2, -1, 0, 1, 2, 3, 5, 7, bits - 1, bits, bits + 1, info.max - 1, info.max}
    values |= {info.max // 3, info.min // 3, 255, 46341}
    chosen = np.array(sorted(v for v in values if info.min <= v <= info.max), dtype)
    if dtype.itemsize == 1 and every_pair:
        chosen = np.arange(info.min, info.max + 1).astype(dtype)
    grid = np.meshgrid(chosen, chosen)
    return grid[0].reshape(-1), grid[1].reshape(-1)


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("function", BINARY)
def test_binary(runtime: Any, function: str, name: str) -> None:
    a, b = _operands(TYPES[name], runtime.is_full)
    pairs = zip(a.tolist(), b.tolist(), strict=True)
    expected = _wrapped([BINARY[function](x, y, 8 * a.itemsize) for x, y in pairs], a.dtype)
    np.testing.assert_array_equal(runtime(f"{function}_{name}", a, b), expected)


@pytest.mark.parametrize("name", ["i8", "i16", "i32", "i64", "u8", "u16", "u32"])
@pytest.mark.parametrize("function", ["div", "mod", "fmod"])
def test_divisions_without_branches_are_the_same(runtime: Any, function: str, name: str) -> None:
    a, b = _operands(TYPES[name], True)
    np.testing.assert_array_equal(runtime(f"lane_{function}_{name}", a, b), runtime(f"{function}_{name}", a, b))


@pytest.mark.parametrize("name", ["i32", "i64", "u32"])
def test_divisions_without_branches_see_what_is_next_to_a_multiple(runtime: Any, name: str) -> None:
    draws, info = np.random.default_rng(0), np.iinfo(TYPES[name])
    signs = draws.choice([-1, 1] if info.min else [1], (2, 20000))
    b, times = (np.exp2(draws.uniform(1, info.bits - 1, (2, 20000))) * signs).astype(TYPES[name])
    a = b * times + draws.integers(0, 3, len(b)).astype(TYPES[name])  # wraps
    np.testing.assert_array_equal(runtime(f"lane_div_{name}", a, b), runtime(f"div_{name}", a, b))


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("function", UNARY)
def test_unary(runtime: Any, function: str, name: str) -> None:
    a, _ = _operands(TYPES[name], runtime.is_full)
    expected = _wrapped([UNARY[function](x) for x in a.tolist()], a.dtype)
    np.testing.assert_array_equal(runtime(f"{function}_{name}", a), expected)
