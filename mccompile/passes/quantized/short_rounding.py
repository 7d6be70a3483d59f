"""Rounded rational numbers as short fixed point: 32-bit numbers that make

    ((t + bias) * raise * multiplier / 2^32 + addend) / 2^shift        (both quotients rounded down)

equal to `t * factor + constant` rounded to the nearest integer, halves to even. `raise` is a power of two, which lets
channels whose factors span widely share a shift; where none is asked for, it is 1.

Invariant: what is found gives the same integer as the exact formula for every t in its range, as far as results between
`low` and `high` are concerned. Both sides grow with t, so it is enough that they take each step at the same t: for a
given bias and addend, each step is two linear inequalities for the multiplier.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

import numpy as np

FAR = 1 << 16  # how far from the nearest integer a bias is looked for
TRIES = 8


class ShortRounding(NamedTuple):
    bias: int
    multiplier: int
    addend: int
    raised: int = 1


def short_rounding(
    factor: Fraction,
    constant: Fraction,
    reach: tuple[int, int],
    low: int,
    high: int,
    shift: int,
    may_raise: bool = False,
) -> ShortRounding | None:
    """`reach`: the lowest and the highest t. Results below `low` and above `high` need only stay there."""
    first, last = reach
    raised = 1 << math.floor(factor * (2 << shift)).bit_length()
    if factor <= 0 or first > last or (raised > 1 and not may_raise):
        return None
    steps = np.arange(low + 1, high + 1, dtype=np.int64)
    places = np.array(_places(factor, constant, first, last, low, high), np.int64)

    def fits(bias: int, addend: int) -> bool:
        return max(abs(first + bias), abs(last + bias)) * raised < 1 << 30 and abs(addend) < 1 << 28

    def needed(addend: int) -> np.ndarray:
        """What (t + bias) * multiplier must be for each step."""
        return -(((addend << 32) - (steps << (32 + shift))) // raised)

    for bias, addend in _offsets(factor, constant, shift):
        if not fits(bias, addend):
            continue
        multiplier = _multiplier(factor / raised, shift, needed(addend), places, bias, first, last)
        if multiplier is not None:
            return ShortRounding(bias, multiplier, addend, raised)
    # A tiny factor has a coarse multiplier but few steps: the bias alone can meet them.
    addend = round((constant + Fraction(1, 2)) * (1 << shift))
    if fits(0, addend):
        multiplier = max(1, round(factor / raised * (1 << (32 + shift))))
        found = _bias(multiplier, needed(addend), places, first, last)
        if found is not None and fits(found, addend):
            return ShortRounding(found, multiplier, addend, raised)
    return None


def _places(factor: Fraction, constant: Fraction, first: int, last: int, low: int, high: int) -> list[int]:
    """For each result above `low`, the smallest t that gives at least that much; `last + 1` where none does."""
    up, down = constant.denominator * factor.denominator, 2 * constant.denominator * factor.numerator
    found = []
    for step in range(low + 1, high + 1):
        place, rest = divmod((2 * step - 1) * up - 2 * constant.numerator * factor.denominator, down)
        # A half is rounded to the even neighbour: up to `step` where that is even.
        place += 1 if rest or step % 2 else 0
        found.append(min(max(place, first), last + 1))
    return found


def _offsets(factor: Fraction, constant: Fraction, shift: int) -> Iterator[tuple[int, int]]:
    """Bias and addend that together come close to the constant and the half, the simplest first."""
    unit = factor * (1 << shift)
    whole = (constant + Fraction(1, 2)) * (1 << shift)
    nearest = round(constant / factor) if abs(constant) < factor * (1 << 29) else 0
    rest = whole - nearest * unit
    yield nearest, round(rest)
    moves = np.arange(-FAR, FAR + 1)
    left = float(rest - math.floor(rest)) - moves * float(unit)
    for position in np.argsort(np.abs(left - np.rint(left)), kind="stable")[:TRIES]:
        bias = nearest + int(moves[position])
        yield bias, round(whole - bias * unit)


def _multiplier(
    factor: Fraction, shift: int, needed: np.ndarray, places: np.ndarray, bias: int, first: int, last: int
) -> int | None:
    """The one nearest to the factor with (t + bias) * multiplier >= needed at t = place, but not before."""
    reached, before = places <= last, places > first
    lowest, highest = _bounds(places[reached] + bias, needed[reached])
    # v * m <= needed - 1 where it is not reached yet: the same with other signs.
    below = _bounds(-(places[before] - 1 + bias), 1 - needed[before])
    lowest, highest = max(lowest, below[0], 0), min(highest, below[1], (1 << 31) - 1)
    if lowest > highest:
        return None
    return min(max(round(factor * (1 << (32 + shift))), lowest), highest)


def _bias(multiplier: int, needed: np.ndarray, places: np.ndarray, first: int, last: int) -> int | None:
    """The one nearest to 0 with (t + bias) * multiplier >= needed at t = place, but not before."""
    reached, before = places <= last, places > first
    lowest = np.max(-(-needed[reached] // multiplier) - places[reached], initial=-(1 << 30))
    highest = np.min((needed[before] - 1) // multiplier - (places[before] - 1), initial=1 << 30)
    return int(min(max(0, lowest), highest)) if lowest <= highest else None


def _bounds(values: np.ndarray, needed: np.ndarray) -> tuple[int, int]:
    """The lowest and highest m with value * m >= needed for all."""
    if np.any(needed[values == 0] > 0):
        return 1, 0
    up, down = values > 0, values < 0
    lowest = np.max(-(-needed[up] // values[up]), initial=0)
    highest = np.min(-needed[down] // -values[down], initial=(1 << 31) - 1)
    return int(lowest), int(highest)
