"""Sums of a few bytes times rational factors as fixed point of 32 bits:

    (high(t0 << left, m0) + high(t1 << left, m1) + addend) >> shift

where high is the upper half of a product of 32-bit numbers, rounded down, and left brings a byte to the top.

Invariant: what is found equals the exact sum, rounded to the nearest integer, halves to even, plus the zero point, for
all bytes; that is tried, byte by byte. Nothing overflows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

SHIFTS = (21, 22, 20, 18, 16, 14)  # code contains the shift, so the usual one comes first
SHIFT_OF_ALL = 20  # nothing overflows up to factors of 4, and numbers are fine enough for all
MOVES = (0, 1, -1, 2, -2, 3, -3, 4, -4)  # of the addend, which numbers near halves may ask for
BESIDE = (0, 1, -1, 2, -2, 4, -4)  # multipliers beside the nearest ones, for the same reason
NEAR = 1e-9  # floats are good enough at this distance from a half
MOST_NEAR = 512  # sums that are looked at one by one


@dataclass(frozen=True)
class ByteRounding:
    multipliers: tuple[int, ...]
    addend: int
    left: int
    shift: int


def byte_rounding(
    factors: Sequence[Fraction],
    constant: Fraction,
    ranges: Sequence[tuple[int, int]],
    low: int,
    high: int,
    zero: int = 0,
    shifts: Sequence[int] = SHIFTS,
) -> ByteRounding | None:
    """`ranges`: the lowest and highest value of each term, at most two. Results below `low` and above `high` need only
    stay there. `shifts` are tried in their order."""
    if not shifts or len(factors) > 2 or max(abs(number) for number in (*factors, constant)) >= 1 << 14:
        return None
    terms = np.meshgrid(*(np.arange(first, last + 1) for first, last in ranges), indexing="ij")
    wanted = _rounded(factors, constant, terms)
    if wanted is None:
        return None
    wanted = np.clip(wanted + zero, low, high)
    left = 24 if max(last for _, last in ranges) < 128 else 23
    for shift in shifts:
        nearest = [round(factor * (1 << (32 - left + shift))) for factor in factors]
        # Each product is rounded down by half a unit, on the average.
        middle = round((constant + zero + Fraction(1, 2)) * (1 << shift) + Fraction(len(factors), 2))
        for beside in itertools.product(BESIDE, repeat=len(factors)):
            multipliers = tuple(m + move for m, move in zip(nearest, beside, strict=True))
            if max(map(abs, multipliers)) >= 1 << 31:
                break
            products = sum(t * m >> (32 - left) for t, m in zip(terms, multipliers, strict=True))
            for addend in (middle + move for move in MOVES):
                total = products + addend
                if max(abs(addend), np.abs(total).max()) >= 1 << 31:
                    break
                if np.array_equal(np.clip(total >> shift, low, high), wanted):
                    return ByteRounding(multipliers, addend, left, shift)
    return None


def _rounded(factors: Sequence[Fraction], constant: Fraction, terms: Sequence[np.ndarray]) -> np.ndarray | None:
    """Floats tell most sums; those too close to a half are looked at one by one, unless there are many."""
    sums = sum((t * float(f) for t, f in zip(terms, factors, strict=True)), float(constant))
    rounded = np.rint(sums).astype(np.int64)
    near = np.argwhere(np.abs(sums - np.floor(sums) - 0.5) < NEAR)
    if len(near) > MOST_NEAR:
        return None
    for place in map(tuple, near):
        rounded[place] = round(sum((int(t[place]) * f for t, f in zip(terms, factors, strict=True)), constant))
    return rounded
