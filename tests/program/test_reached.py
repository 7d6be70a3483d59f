"""The bytes that a view touches are those of its elements."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from mccompile.base.dims import Dim, symbol
from mccompile.base.dtypes import DType, f32, i4
from mccompile.program import reached
from mccompile.program.ir import Buffer, View

N, TRIP = symbol("n", 1, 7), symbol("i", 0, 4)


def touched(shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> list[int]:
    places = product(*(range(dim) for dim in shape))
    return [offset + sum(a * b for a, b in zip(place, strides, strict=True)) for place in places]


@pytest.mark.parametrize("dtype", [f32, i4])
def test_ranges_are_those_of_all_elements(dtype: DType) -> None:
    chance = np.random.default_rng(0)
    for _ in range(300):
        rank = int(chance.integers(0, 4))
        shape = tuple(int(dim) for dim in chance.integers(0, 4, rank))
        strides = tuple(int(stride) for stride in chance.integers(-5, 6, rank))
        elements = touched(shape, strides, 60) or [0, -1]
        low, high = min(elements[0], *elements), max(elements)
        wanted = (0, 0) if 0 in shape else (low * dtype.bits // 8, ((high + 1) * dtype.bits + 7) // 8)
        assert View(Buffer("b", dtype, (200,)), shape, strides, 60).byte_range == wanted


@pytest.mark.parametrize(
    ("shape", "strides", "offset", "wanted"),
    [
        ((3,), (2,), TRIP, (0, 36)),  # in any trip
        ((3,), (-1,), TRIP + 2, (0, 28)),
        ((2,), (1,), TRIP * 5 - TRIP, (0, 72)),
        ((2,), (1,), TRIP * TRIP - TRIP, (0, 72)),  # within the buffer, whatever bounds of terms say
        ((N, 2), (2, 1), 0, (0, 80)),  # sizes of a run: all of it
        ((2,), (N,), 4, (0, 80)),
        ((0, 3), (3, 1), TRIP, (0, 0)),
    ],
)
def test_what_is_not_known_may_be_anything(
    shape: tuple[Dim, ...], strides: tuple[Dim, ...], offset: Dim, wanted: tuple[int, int]
) -> None:
    assert View(Buffer("b", f32, (20,)), shape, strides, offset).byte_range == wanted


def test_rings_are_touched_as_a_whole_where_anything_is() -> None:
    ring = Buffer("ring", f32, (4, 5))
    assert View(ring, (1, 5), (5, 1), 5, lines=4).byte_range == (0, 80)
    assert View(ring, (0, 5), (5, 1), 5, lines=4).byte_range == (0, 0)


def test_views_of_copies_are_worked_out_once() -> None:
    reached._reached.cache_clear()
    for name in "ab":
        assert View(Buffer(name, f32, (20,)), (2, 3), (5, 1), 1).byte_range == (4, 36)
    assert reached._reached.cache_info().misses == 1
