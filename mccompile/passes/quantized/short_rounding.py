"""Rounded rational numbers in short fixed point: 32-bit numbers that make

    ((t + bias) * raise * multiplier / 2^32 + addend) / 2^shift        (both quotients rounded down)

equal to `t * factor + constant` rounded to the nearest integer, halves to even. `raise` is a power of two, which lets
channels whose factors span widely share a shift; where none is asked for, it is 1. Biases of quantized networks are
multiples of the factor, so all channels can have one addend, the half; and of the multipliers that will do one has the
power of `raise` as its lowest bits (`short_number`): then two numbers are all that a channel has of its own.

Invariant: what is found gives the same integer as the exact formula for every t in its range, as far as results between
`low` and `high` are concerned. Both sides grow with t, so it is enough that they take each step at the same t: for a
given bias and addend, each step is two linear inequalities for the multiplier.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from ...expr.raised import POWER_BITS

FAR = 1 << 16  # how far from the nearest integer a bias is looked for
TRIES = 8
MANY = 64  # moves that are looked at to find these
CIRCLE = 1 << 56  # parts of a whole number
USUAL = 1 << 24  # a multiplier that leaves biases room
PARTS = 1 << 40  # of a whole number, where many are added up
FURTHEST = 1 << 61  # fits in 64 bits, also with one more
_once = lru_cache(maxsize=10_000)  # a model is compiled again for each target, and for each plan that is tried


class Rescaling(NamedTuple):
    """t times a factor plus a constant is what becomes of t; below `low` and above `high` results only stay there."""

    factor: Fraction
    constant: Fraction
    reach: tuple[int, int]  # the lowest and the highest t
    low: int
    high: int


class ShortRounding(NamedTuple):
    bias: int
    multiplier: int
    addend: int
    raised: int = 1


@_once
def short_rounding(wanted: Rescaling, shift: int, may_raise: bool = False) -> ShortRounding | None:
    """Numbers that do it with this shift, if there are any."""
    task = _task(wanted, shift, may_raise)
    if task is None:
        return None
    factor, constant, *_ = wanted
    for bias, addend in _offsets(factor, constant, shift):
        multiplier = task.multiplier(bias, addend)
        if multiplier is not None:
            return ShortRounding(bias, multiplier, addend, task.raised)
    # A tiny factor has a coarse multiplier but few steps: the bias alone can meet them.
    addend = round((constant + Fraction(1, 2)) * (1 << shift))
    if task.fits(0, addend):
        multiplier = max(1, task.wanted)
        found = _bias(multiplier, task.needed(addend), task.places, task.first, task.last)
        if found is not None and task.fits(found, addend):
            return ShortRounding(found, multiplier, addend, task.raised)
    return None


@_once
def short_number(wanted: Rescaling, shift: int, may_raise: bool) -> ShortRounding | None:
    """The same with the addend that all channels have: half of a result. Where sums may be raised, the power of `raise`
    stands in the multiplier."""
    task = _task(wanted, shift, may_raise)
    if task is None:
        return None
    factor, constant, *_ = wanted
    addend, bias = 1 << shift >> 1, round(constant / factor)
    power = task.raised.bit_length() - 1 if may_raise else None
    multiplier = task.multiplier(bias, addend, power)
    if multiplier is None and task.is_constant:  # as that of a channel that is dead: any factor will do
        bias = round(constant * (1 << (32 + shift)) / (task.raised * USUAL))
        multiplier = replace(task, wanted=USUAL).multiplier(bias, addend, power)
    return None if multiplier is None else ShortRounding(bias, multiplier, addend, task.raised)


@dataclass(frozen=True)
class _Task:
    """What multiplier and bias have to do: take each step of the result at its place."""

    shift: int
    first: int  # t
    last: int
    raised: int
    wanted: int  # the multiplier that is the factor
    steps: np.ndarray
    places: np.ndarray

    @property
    def is_constant(self) -> bool:
        """Is the result one number for all t?"""
        return bool(np.all((self.places == self.first) | (self.places == self.last + 1)))

    def fits(self, bias: int, addend: int) -> bool:
        most = max(abs(self.first + bias), abs(self.last + bias))
        return most * self.raised < 1 << 30 and abs(addend) < 1 << 28

    def needed(self, addend: int) -> np.ndarray:
        """What (t + bias) * multiplier must be for each step."""
        return -(((addend << 32) - (self.steps << (32 + self.shift))) // self.raised)

    def multiplier(self, bias: int, addend: int, power: int | None = None) -> int | None:
        """The one nearest to the factor that does it with this bias, and ends with this power if one is given."""
        if not self.fits(bias, addend):
            return None
        lowest, highest = _multipliers(self.needed(addend), self.places, bias, self.first, self.last)
        if lowest > highest:
            return None
        nearest = min(max(self.wanted, lowest), highest)
        if power is None:
            return nearest
        below = nearest - (nearest - power) % (1 << POWER_BITS)
        return next((m for m in (below, below + (1 << POWER_BITS)) if lowest <= m <= highest), None)


def _task(wanted: Rescaling, shift: int, may_raise: bool) -> _Task | None:
    factor, _, (first, last), low, high = wanted
    raised = 1 << math.floor(factor * (2 << shift)).bit_length()
    if factor <= 0 or first > last or (raised > 1 and not may_raise):
        return None
    steps = np.arange(low + 1, high + 1, dtype=np.int64)
    multiplier = round(factor / raised * (1 << (32 + shift)))
    return _Task(shift, first, last, raised, multiplier, steps, _places(wanted))


def _places(wanted: Rescaling) -> np.ndarray:
    """For each result above `low`, the smallest t that gives at least that much; `last + 1` where none does."""
    factor, constant, (first, last), low, high = wanted
    up, down = constant.denominator * factor.denominator, 2 * constant.denominator * factor.numerator
    begin = (2 * low + 1) * up - 2 * constant.numerator * factor.denominator

    def exact(number: int) -> int:
        # A half is rounded to the even neighbour: up to the step where that is even.
        return (begin + 2 * up * number + down - 1 + (low + 1 + number) % 2) // down

    (place, rest), (further, more), count = divmod(begin, down), divmod(2 * up, down), high - low
    if max(abs(place), abs(place + count * further), further) >= FURTHEST:
        return np.array([min(max(exact(number), first), last + 1) for number in range(count)], np.int64)
    # What is left of a whole number in fixed point, too low by less than a part for each step and one more: where that
    # may be what makes it whole, it is asked exactly.
    numbers = np.arange(count, dtype=np.int64)
    parts = rest * PARTS // down + more * PARTS // down * numbers
    found: np.ndarray = place + 1 + further * numbers + parts // PARTS
    left = parts % PARTS
    for number in np.flatnonzero((left == 0) | (left >= PARTS - 1 - numbers)).tolist():
        found[number] = exact(number)
    return found.clip(first, last + 1)


def _offsets(factor: Fraction, constant: Fraction, shift: int) -> Iterator[tuple[int, int]]:
    """Bias and addend that together come close to the constant and the half, the simplest first."""
    unit = factor * (1 << shift)
    whole = (constant + Fraction(1, 2)) * (1 << shift)
    nearest = round(constant / factor) if abs(constant) < factor * (1 << 29) else 0
    rest = whole - nearest * unit
    yield nearest, round(rest)
    tried: list[int] = []
    for many in (1, TRIES):  # the first is nearly always right
        for move in _near_whole(unit, rest, many):
            if move not in tried:
                tried.append(move)
                bias = nearest + move
                yield bias, round(whole - bias * unit)


def _near_whole(unit: Fraction, rest: Fraction, many: int) -> list[int]:
    """So many moves, none further than FAR, with `rest - move * unit` as near to a whole number as any: the nearest
    first, of equals the lowest."""
    step, start = _part(unit), _part(rest + FAR * unit)
    width, narrowest, widest = CIRCLE * many // FAR // 2, 0, CIRCLE // 2
    while True:
        found = list(islice(_hits(step, start - width, start + width), MANY))
        if len(found) < many and width < widest:
            narrowest, width = width, min(2 * width, widest)
        elif len(found) == MANY and width > narrowest + narrowest // MANY + 1:
            widest, width = width, (narrowest + width) // 2
        else:
            break
    distance = {count: abs((start - count * step + CIRCLE // 2) % CIRCLE - CIRCLE // 2) for count in found}
    return [count - FAR for count in sorted(found, key=lambda count: distance[count])[:many]]


def _part(number: Fraction) -> int:
    """What is left of a whole number, in parts of CIRCLE."""
    return round(number * CIRCLE) % CIRCLE


def _hits(step: int, low: int, high: int) -> Iterator[int]:
    """The counts up to 2 * FAR, in their order, with count * step between `low` and `high` on the circle."""
    count = 0
    while True:
        begin = (low - count * step) % CIRCLE
        # An end beyond the circle means that 0 lies between.
        further = 0 if begin + high - low >= CIRCLE else _first(step, CIRCLE, begin, begin + high - low)
        if further is None or count + further > 2 * FAR:
            return
        count += further
        yield count
        count += 1


def _first(step: int, circle: int, low: int, high: int) -> int | None:
    """The smallest count with `count * step` modulo `circle` from `low` to `high`, as Euclid finds what divides two
    numbers: rounds that miss are steps of the next circle."""
    if low == 0:
        return 0
    if 2 * step > circle:
        step, low, high = circle - step, circle - high, circle - low
    if step == 0:
        return None
    count = -(-low // step)
    if count * step <= high:
        return count
    rounds = _first(-circle % step, step, low % step, high % step)
    return None if rounds is None else -(-(low + circle * rounds) // step)


def _multipliers(needed: np.ndarray, places: np.ndarray, bias: int, first: int, last: int) -> tuple[int, int]:
    """The lowest and highest with (t + bias) * multiplier >= needed at t = place, but not before."""
    reached, before = places <= last, places > first
    lowest, highest = _bounds(places[reached] + bias, needed[reached])
    # v * m <= needed - 1 where it is not reached yet: the same with other signs.
    below = _bounds(-(places[before] - 1 + bias), 1 - needed[before])
    return max(lowest, below[0], 0), min(highest, below[1], (1 << 31) - 1)


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
