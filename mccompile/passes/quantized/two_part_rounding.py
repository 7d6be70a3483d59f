"""Requantization of sums of few terms of few bits by rational factors, in fixed point with multipliers in two parts, an
upper and a lower one:

    (t0 * m0 + t1 * m1 + addend + ((t0 * n0 + t1 * n1 + low addend) >> low bits)) >> shift

where all products and sums are exact. The lower parts are left out where they are 0. Where halves occur, the shift is
mcc_shift_even, and the zero point is added behind it.

Invariant: as that of byte_rounding.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from ...base.records import dataclass
from .byte_rounding import SHIFTS, exact_sums, is_small

MOST_LOW = 20  # bits of a lower part
SUMS = 30  # bits of all sums
UNITS = 4  # below a whole number are halves that mcc_shift_even finds
BELOW = 2  # where they are but for the error of factors


@dataclass(frozen=True)
class TwoPartRounding:
    multipliers: tuple[int, ...]
    addend: int
    low: tuple[int, ...]  # lower parts of the multipliers, and of the addend, or nothing
    low_bits: int
    shift: int


def two_part_rounding(
    factors: Sequence[Fraction],
    constant: Fraction,
    ranges: Sequence[tuple[int, int]],
    low: int,
    high: int,
    zero: int = 0,
    shifts: Sequence[int] = SHIFTS,
    halves: bool = False,
) -> TwoPartRounding | None:
    """As byte_rounding. `halves`: of sums that mcc_shift_even shifts."""
    if not shifts or not is_small(factors, constant, ranges):
        return None
    terms, exact, _ = exact_sums(tuple(factors), constant, tuple(ranges))
    wanted = np.clip(exact + zero, low, high)
    bits = min(MOST_LOW, SUMS - 1 - sum(max(last, -first) for first, last in ranges).bit_length())
    for shift in shifts:
        begun = (constant + Fraction(1, 2) + (0 if halves else zero)) * (1 << shift) - (BELOW if halves else 0)
        whole = [round(number * (1 << bits)) for number in (*(f * (1 << shift) for f in factors), begun)]
        upper, lower = [number >> bits for number in whole], [number & (1 << bits) - 1 for number in whole]
        parts = [_sum(terms, numbers) for numbers in (upper, lower)]
        total = parts[0] + (parts[1] >> bits)
        if max(np.abs(values).max() for values in (*parts, total)) >= 1 << SUMS:
            continue
        found = (total + (total >> shift - 2 & UNITS) >> shift) + zero if halves else total >> shift
        if np.array_equal(np.clip(found, low, high), wanted):
            further = tuple(lower) if any(lower) else ()
            return TwoPartRounding(tuple(upper[:-1]), upper[-1], further, bits if further else 0, shift)
    return None


def _sum(terms: Sequence[np.ndarray], numbers: Sequence[int]) -> np.ndarray:
    *multipliers, addend = numbers
    return np.asarray(sum((t * m for t, m in zip(terms, multipliers, strict=True)), np.int64(addend)))
