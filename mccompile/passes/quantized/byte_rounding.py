"""Sums of a few bytes times rational factors in 32-bit fixed point:

    (high(t0 << left, m0) + high(t1 << left, m1) + addend) >> shift

where high is the upper half of a product of 32-bit numbers, rounded down, and left brings a term to the top. Where
halves occur, or sums come too close to one, two_part_rounding.py has numbers of another form.

Invariant: what is found equals the exact sum, rounded to the nearest integer, halves to even, plus the zero point, for
all bytes; that is tried, byte by byte. Nothing overflows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache

import numpy as np

from ...base.records import dataclass

SHIFTS = (21, 22, 20, 18, 16, 14)  # code contains the shift, so the usual one comes first
SHIFT_OF_ALL = 20  # nothing overflows up to factors of 4, and numbers are fine enough for all
MOVES = (0, 1, -1, 2, -2, 3, -3, 4, -4)  # of the addend, which numbers near halves may ask for
BESIDE = (0, 1, -1, 2, -2, 4, -4)  # multipliers beside the nearest ones, for the same reason
MOST_NEAR = 16  # sums closer to a half than the last bit tells, with which numbers are still looked for
MOST = 1 << 18  # sums that are tried


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
    if not shifts or not is_small(factors, constant, ranges):
        return None
    terms, exact, distances = exact_sums(tuple(factors), constant, tuple(ranges))
    wanted = np.clip(exact + zero, low, high)
    left = 31 - max(max(last, -first - 1) for first, last in ranges).bit_length()
    for shift in shifts:
        if np.count_nonzero(distances < 1 / (1 << shift)) > MOST_NEAR:
            continue
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


def is_small(factors: Sequence[Fraction], constant: Fraction, ranges: Sequence[tuple[int, int]]) -> bool:
    sums = math.prod(last + 1 - first for first, last in ranges)
    return len(factors) <= 2 and max(abs(number) for number in (*factors, constant)) < 1 << 14 and sums <= MOST


@lru_cache(1)
def exact_sums(
    factors: tuple[Fraction, ...], constant: Fraction, ranges: tuple[tuple[int, int], ...]
) -> tuple[list[np.ndarray], np.ndarray, np.ndarray]:
    """All terms; their exact sums as integers, halves to even; and how far each is from a half. Floats tell most; those
    too close to a half are computed in integers."""
    terms = list(np.meshgrid(*(np.arange(first, last + 1) for first, last in ranges), indexing="ij"))
    sums = np.asarray(sum((t * float(f) for t, f in zip(terms, factors, strict=True)), float(constant)))
    rounded = np.rint(sums).astype(np.int64)
    distances = np.abs(sums - np.floor(sums) - 0.5)
    near = distances < max(1.0, np.abs(sums).max()) * 2.0**-48
    below = math.lcm(constant.denominator, *(f.denominator for f in factors))
    places = zip((t[near].astype(object) for t in terms), factors, strict=True)
    numbers = sum((t * int(f * below) for t, f in places), int(constant * below))
    whole, rest = (2 * numbers + below) // (2 * below), (2 * numbers + below) % (2 * below)
    rounded[near] = whole - (rest == 0) * (whole & 1)
    distances[near] = (np.minimum(rest, 2 * below - rest) / (2 * below)).astype(np.float64)
    return terms, rounded, distances
