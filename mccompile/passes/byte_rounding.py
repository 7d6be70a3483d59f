"""Sums of a few bytes times rational factors as fixed point of 64 bits with 32-bit multipliers:

    (t0 * m0 + t1 * m1 + addend) >> shift

Invariant: what is found equals the exact sum, rounded to the nearest integer, halves to even, for all bytes; that is
tried, byte by byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

SHIFTS = (29, 30, 28, 26, 24, 22, 20)  # code contains the shift, so the usual one comes first
MOVES = (0, 40, -40, 80, -80, 160, -160, 320, -320)  # of the addend, which numbers near halves may ask for
NEAR = 1e-9  # floats are good enough at this distance from a half
MOST_NEAR = 512  # sums that are looked at one by one


@dataclass(frozen=True)
class ByteRounding:
    multipliers: tuple[int, ...]
    addend: int
    shift: int


def byte_rounding(
    factors: Sequence[Fraction], constant: Fraction, ranges: Sequence[tuple[int, int]], low: int, high: int
) -> ByteRounding | None:
    """`ranges`: the lowest and highest value of each term, at most two. Results below `low` and above `high` need only
    stay there."""
    if len(factors) > 2 or min(factors) < 0 or max(*factors, abs(constant)) >= 1 << 14:
        return None
    terms = np.meshgrid(*(np.arange(first, last + 1) for first, last in ranges), indexing="ij")
    wanted = _rounded(factors, constant, terms)
    if wanted is None:
        return None
    for shift in SHIFTS:
        multipliers = tuple(round(factor * (1 << shift)) for factor in factors)
        if max(multipliers) >= 1 << 31:
            continue
        for move in MOVES:
            addend = round((constant + Fraction(1, 2)) * (1 << shift)) + move
            total = sum((t * m for t, m in zip(terms, multipliers, strict=True)), np.int64(addend))
            if np.array_equal(np.clip(total >> shift, low, high), np.clip(wanted, low, high)):
                return ByteRounding(multipliers, addend, shift)
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
