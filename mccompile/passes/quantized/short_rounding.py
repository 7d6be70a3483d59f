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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

import numpy as np

from ...base.records import dataclass
from ...expr.raised import POWER_BITS
from .fixed_point import first_inside

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


@lru_cache(maxsize=100)
def short_roundings(wanted: tuple[Rescaling, ...], shift: int, may_raise: bool) -> tuple[ShortRounding, ...]:
    """Numbers for all channels, whose results have one range; none if one of them has none."""
    return _of_all(short_rounding, _first_offset, wanted, shift, may_raise)


@lru_cache(maxsize=100)
def short_numbers(wanted: tuple[Rescaling, ...], shift: int, may_raise: bool) -> tuple[ShortRounding, ...]:
    """The same with the addend that all channels have."""
    return _of_all(short_number, _common_offset, wanted, shift, may_raise)


def _of_all(
    alone: Callable[[Rescaling, int, bool], ShortRounding | None],
    offset: Callable[[Rescaling, int], tuple[int, int]],
    wanted: Sequence[Rescaling],
    shift: int,
    may_raise: bool,
) -> tuple[ShortRounding, ...]:
    """The offset that is tried first nearly always does, so those of all channels are tried at once."""
    tasks = _tasks(wanted, shift, may_raise)
    offsets = [offset(each, shift) for each in wanted] if tasks else []
    found: list[ShortRounding] = []
    multipliers = _multipliers(tasks, offsets, may_raise and alone is short_number)
    for each, task, (bias, addend), multiplier in zip(wanted, tasks, offsets, multipliers, strict=bool(tasks)):
        tried = None if multiplier is None else ShortRounding(bias, multiplier, addend, task.raised)
        number = tried or alone(each, shift, may_raise)
        if number is None:
            return ()
        found.append(number)
    return tuple(found)


@_once
def short_rounding(wanted: Rescaling, shift: int, may_raise: bool = False) -> ShortRounding | None:
    """Numbers that do it with this shift, if there are any."""
    tasks = _tasks([wanted], shift, may_raise)
    if not tasks:
        return None
    [task] = tasks
    for bias, addend in _offsets(wanted, shift):
        multiplier = task.multiplier(bias, addend)
        if multiplier is not None:
            return ShortRounding(bias, multiplier, addend, task.raised)
    # A tiny factor has a coarse multiplier but few steps: the bias alone can meet them.
    addend = round((wanted.constant + Fraction(1, 2)) * (1 << shift))
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
    tasks = _tasks([wanted], shift, may_raise)
    if not tasks:
        return None
    [task] = tasks
    bias, addend = _common_offset(wanted, shift)
    multiplier = task.multiplier(bias, addend, may_raise)
    if multiplier is None and task.is_constant:  # as that of a channel that is dead: any factor will do
        bias = round(wanted.constant * (1 << (32 + shift)) / (task.raised * USUAL))
        multiplier = replace(task, wanted=USUAL).multiplier(bias, addend, may_raise)
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

    def multiplier(self, bias: int, addend: int, power: bool = False) -> int | None:
        """The one nearest to the factor that does it with this bias, and ends with the power of `raised` if asked."""
        return _multipliers([self], [(bias, addend)], power)[0]

    def nearest(self, lowest: int, highest: int, power: bool) -> int | None:
        """The multiplier in these bounds that is nearest to the factor."""
        nearest = min(max(self.wanted, lowest), highest)
        if not power:
            return nearest
        below = nearest - (nearest - (self.raised.bit_length() - 1)) % (1 << POWER_BITS)
        return next((m for m in (below, below + (1 << POWER_BITS)) if lowest <= m <= highest), None)


def _tasks(wanted: Sequence[Rescaling], shift: int, may_raise: bool) -> list[_Task]:
    """Those of channels whose results have one range; none if one of them cannot be met."""
    raised = [1 << ((each.factor.numerator << shift + 1) // each.factor.denominator).bit_length() for each in wanted]
    too_large = max(raised) > 1 and not may_raise
    if too_large or any(each.factor <= 0 or each.reach[0] > each.reach[1] for each in wanted):
        return []
    steps = np.arange(wanted[0].low + 1, wanted[0].high + 1, dtype=np.int64)
    return [
        _Task(shift, *reach, power, _divided(factor.numerator << 32 + shift, factor.denominator * power), steps, places)
        for (factor, _, reach, _, _), power, places in zip(wanted, raised, _places(wanted), strict=True)
    ]


def _divided(number: int, by: int) -> int:
    """Rounded to the nearest, halves to even."""
    quotient, rest = divmod(number, by)
    return quotient + (2 * rest > by or (2 * rest == by and quotient % 2 == 1))


def _places(wanted: Sequence[Rescaling]) -> np.ndarray:
    """For each channel and each result above `low`, the smallest t that gives at least that much; `last + 1` where none
    does."""
    rows = []  # of numbers that are divided, and by what
    for factor, constant, _, low, _ in wanted:
        up, down = constant.denominator * factor.denominator, 2 * constant.denominator * factor.numerator
        rows.append(((2 * low + 1) * up - 2 * constant.numerator * factor.denominator, 2 * up, down))
    low, count = wanted[0].low, wanted[0].high - wanted[0].low

    def exact(row: int, number: int) -> int:
        begin, pace, down = rows[row]
        first, last = wanted[row].reach
        # A half is rounded to the even neighbour: up to the step where that is even.
        return min(max((begin + pace * number + down - 1 + (low + 1 + number) % 2) // down, first), last + 1)

    # What is left of a whole number in fixed point, too low by less than a part for each step and one more: where that
    # may be what makes it whole, it is asked exactly.
    numbers = np.arange(count, dtype=np.int64)
    found = np.empty((len(rows), count), np.int64)
    unsure = np.ones((len(rows), count), bool)
    for row, (begin, pace, down) in enumerate(rows):
        (place, rest), (further, more) = divmod(begin, down), divmod(pace, down)
        if max(abs(place), abs(place + count * further), further) < FURTHEST:
            parts = rest * PARTS // down + more * PARTS // down * numbers
            left = parts % PARTS
            first, last = wanted[row].reach
            found[row] = (place + 1 + further * numbers + parts // PARTS).clip(first, last + 1)
            unsure[row] = (left == 0) | (left >= PARTS - 1 - numbers)
    for row, number in np.argwhere(unsure).tolist():
        found[row, number] = exact(row, number)
    return found


def _first_offset(wanted: Rescaling, shift: int) -> tuple[int, int]:
    """Bias and addend that are the simplest ones close to the constant and the half."""
    (factor, constant, *_) = wanted
    p, q, a, b = factor.numerator, factor.denominator, constant.numerator, constant.denominator
    bias = _divided(a * q, b * p) if abs(a) * q < p * b << 29 else 0
    return bias, _divided((2 * a + b) * q - 2 * b * p * bias << shift, 2 * b * q)


def _common_offset(wanted: Rescaling, shift: int) -> tuple[int, int]:
    """Those with the addend that all channels have."""
    return round(wanted.constant / wanted.factor), 1 << shift >> 1


def _offsets(wanted: Rescaling, shift: int) -> Iterator[tuple[int, int]]:
    """Bias and addend that together come close to the constant and the half, the simplest first."""
    nearest, addend = _first_offset(wanted, shift)
    yield nearest, addend
    unit = wanted.factor * (1 << shift)
    whole = (wanted.constant + Fraction(1, 2)) * (1 << shift)
    rest = whole - nearest * unit
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
        further = 0 if begin + high - low >= CIRCLE else first_inside(step, CIRCLE, begin, begin + high - low)
        if further is None or count + further > 2 * FAR:
            return
        count += further
        yield count
        count += 1


def _multipliers(tasks: Sequence[_Task], offsets: Sequence[tuple[int, int]], power: bool = False) -> list[int | None]:
    """The multiplier of each that is nearest to the factor and does it with this bias and addend. `power`: it ends with
    that of `raised`."""
    fitting = [number for number, task in enumerate(tasks) if task.fits(*offsets[number])]
    found: list[int | None] = [None] * len(tasks)
    if not fitting:
        return found
    fit = [tasks[number] for number in fitting]
    needed = np.array([task.needed(offsets[number][1]) for number, task in zip(fitting, fit, strict=True)])
    places = np.array([task.places for task in fit])
    first, last, bias = np.array(
        [(task.first, task.last, offsets[number][0]) for number, task in zip(fitting, fit, strict=True)], np.int64
    ).T[..., None]
    # (t + bias) * multiplier >= needed at t = place, but not before.
    at_places = _bounds(places + bias, needed, places <= last)
    # v * m <= needed - 1 where it is not reached yet: the same with other signs.
    below = _bounds(-(places - 1 + bias), 1 - needed, places > first)
    lowest, highest = np.maximum(at_places[0], below[0]).tolist(), np.minimum(at_places[1], below[1]).tolist()
    for number, task, least, most in zip(fitting, fit, lowest, highest, strict=True):
        if least <= most:
            found[number] = task.nearest(least, most, power)
    return found


def _bias(multiplier: int, needed: np.ndarray, places: np.ndarray, first: int, last: int) -> int | None:
    """The one nearest to 0 with (t + bias) * multiplier >= needed at t = place, but not before."""
    reached, before = places <= last, places > first
    lowest = np.max(-(-needed[reached] // multiplier) - places[reached], initial=-(1 << 30))
    highest = np.min((needed[before] - 1) // multiplier - (places[before] - 1), initial=1 << 30)
    return int(min(max(0, lowest), highest)) if lowest <= highest else None


def _bounds(values: np.ndarray, needed: np.ndarray, where: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest m with value * m >= needed for all of a row that count."""
    up, down = where & (values > 0), where & (values < 0)
    never = np.any(where & (values == 0) & (needed > 0), axis=1)
    lowest = np.max(-(-needed // np.where(up, values, 1)), axis=1, initial=0, where=up)
    highest = np.min(-needed // np.where(down, -values, 1), axis=1, initial=(1 << 31) - 1, where=down)
    return np.where(never, 1, lowest), np.where(never, 0, highest)
