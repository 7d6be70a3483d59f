"""SIMD int8 dot products give the bits of integer arithmetic, also where 16 bits would not hold two products; on
every width of vector that this machine has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.expr.functions import FUNCTIONS
from mccompile.targets import api as targets
from tests.runtime_c.built import built

HARNESS = Path(__file__).with_name("dot_harness.c")
DECLARED = """
void t_dot(const uint8_t *x, const int8_t *w, int32_t *y, int n);
int32_t t_sum_u8(const uint8_t *x, int n);
int32_t t_sum_i8(const int8_t *x, int n);
void t_high_sum(const int32_t *sum, const int32_t *a, const int32_t *b, int32_t *y, int n);
void t_shift_even(const int32_t *sum, int32_t *y, int n);
void t_fixed(const int32_t *t, const int64_t *m, const int64_t *addend, const uint8_t *shift, int32_t *y, int n);
void t_four_u8(const uint8_t *x, uint8_t *y, int n);
void t_four_i8(const int8_t *x, int8_t *y, int n);
void t_saturated(const int32_t *x, uint8_t *unsigned_y, int8_t *signed_y, int n);
"""
C_TYPES = {"uint8": "uint8_t", "int8": "int8_t", "int32": "int32_t", "int64": "int64_t"}
COUNT = 4096
CHANCE = np.random.default_rng(1)


def _variants() -> list[tuple[int, str]]:
    """Lanes and the flags that make registers for them; those of this machine may have VNNI."""
    native = targets.load("native")
    widths = [lanes for lanes in (8, 16) if lanes <= native.option("dot_lanes", 0)]
    found = [(lanes, "-march=native") for lanes in widths]
    found += [(8, "-march=x86-64-v3")] if "avx2" in native.isas else []
    return found + ([(16, "-march=x86-64-v4")] if "avx512" in native.isas else [])


@dataclass(frozen=True)
class Sums:
    lanes: int
    call: Callable[..., Any]  # a function by its name, with arrays


@pytest.fixture(scope="module", params=[(c, *v) for c in ("gcc", "clang") for v in _variants()], ids=str)
def sums(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Sums:
    compiler, lanes, flag = request.param
    flags = (f"-DLANES={lanes}", f'-DMACHINE="mcc_dot{lanes}.h"', flag)
    library = built(HARNESS, tmp_path_factory.mktemp("dot"), compiler, DECLARED, *flags)

    def call(name: str, *arrays: np.ndarray) -> Any:
        pointers = [library.ffi.cast(f"{C_TYPES[a.dtype.name]} *", a.ctypes.data) for a in arrays]
        return getattr(library.functions, f"t_{name}")(*pointers, arrays[0].size)

    return Sums(lanes, call)


def test_sums_do_not_saturate(sums: Sums) -> None:
    x = CHANCE.integers(0, 256, COUNT).astype(np.uint8)
    w = CHANCE.integers(-128, 128, COUNT).astype(np.int8)
    x[:256], w[:128], w[128:256] = 255, -128, 127
    begin = CHANCE.integers(-(1 << 20), 1 << 20, COUNT // 4).astype(np.int32)
    found = begin.copy()
    sums.call("dot", x, w, found)
    want = begin + (x.astype(np.int32) * w).reshape(-1, 4).sum(1)
    np.testing.assert_array_equal(found, want)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200])
def test_elements_of_any_number_are_added_up(sums: Sums, count: int) -> None:
    x = CHANCE.integers(0, 256, count).astype(np.uint8)
    assert sums.call("sum_u8", x) == int(x.sum(dtype=np.int64))
    assert sums.call("sum_i8", x.view(np.int8)) == int(x.view(np.int8).sum(dtype=np.int64))


def test_upper_halves_of_products_are_rounded_down(sums: Sums) -> None:
    low, high = -(1 << 31), (1 << 31) - 1
    a, b = (CHANCE.integers(low, high, COUNT, endpoint=True).astype(np.int32) for _ in range(2))
    a[:4], b[:4] = (low, low, high, -1), (low, high, high, 1)
    begin = CHANCE.integers(-1000, 1000, COUNT).astype(np.int32)
    found = np.zeros(COUNT, np.int32)
    sums.call("high_sum", begin, a, b, found)
    want = begin + ((a.astype(np.int64) * b) >> 32)
    np.testing.assert_array_equal(found, want.astype(np.int32))


def test_halves_become_even_as_by_scalars(sums: Sums) -> None:
    found, begin = np.zeros(COUNT, np.int32), np.arange(COUNT, dtype=np.int32) - COUNT // 2
    sums.call("shift_even", begin, found)
    np.testing.assert_array_equal(found, FUNCTIONS["shift_even"].numpy(begin, 5))


@pytest.mark.parametrize("halves", [0, 64])
def test_long_products_are_rounded_as_by_scalars(sums: Sums, halves: int) -> None:
    t = CHANCE.integers(-(1 << 30), 1 << 30, COUNT).astype(np.int32)
    m = CHANCE.integers(0, 1 << 62, COUNT)
    shift = CHANCE.integers(33, 60, COUNT)
    addend = CHANCE.integers(-(1 << 40), 1 << 40, COUNT)
    addend[: COUNT // 2] = -np.array([(int(a) * int(b)) >> 32 for a, b in zip(t, m, strict=True)])[: COUNT // 2]
    addend[: COUNT // 4] += 3 * (np.int64(1) << shift[: COUNT // 4])  # halves of an odd number, to be made even

    def halved(values: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(values.reshape(-1, sums.lanes // 2, 2).transpose(0, 2, 1)).reshape(-1)

    found = np.zeros(COUNT, np.int32)
    sums.call("fixed", t, halved(m), halved(addend), (shift + halves).astype(np.uint8), found)
    want = []
    for term, multiplier, more, bits in zip(t.tolist(), m.tolist(), addend.tolist(), shift.tolist(), strict=True):
        total = ((term * multiplier) >> 32) + more
        whole, rest = total >> bits, total & ((1 << bits) - 1)
        whole -= whole & 1 if halves and rest <= 3 else 0
        want.append((whole + (1 << 31)) % (1 << 32) - (1 << 31))
    np.testing.assert_array_equal(found, want)


def test_four_vectors_go_back_to_where_they_came_from(sums: Sums) -> None:
    x, found = CHANCE.integers(0, 256, COUNT).astype(np.uint8), np.zeros(COUNT, np.uint8)
    sums.call("four_u8", x, found)
    np.testing.assert_array_equal(found, x)
    sums.call("four_i8", x.view(np.int8), found.view(np.int8))
    np.testing.assert_array_equal(found, x)


def test_results_are_saturated(sums: Sums) -> None:
    x = CHANCE.integers(-(1 << 31), 1 << 31, COUNT).astype(np.int32)
    x[:1000] = np.arange(-500, 500)
    found = np.zeros(COUNT, np.uint8), np.zeros(COUNT, np.int8)
    sums.call("saturated", x, *found)
    np.testing.assert_array_equal(found[0], np.clip(x, 0, 255))
    np.testing.assert_array_equal(found[1], np.clip(x, -128, 127))
