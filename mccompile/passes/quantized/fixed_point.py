"""Rational numbers in fixed point: the numbers that mcc_quant.h needs to round `t0 * f0 + t1 * f1 + ... + constant` to
the nearest integer, halves to even.

Invariant: what `fixed_point` gives is right for every value that the terms can take, or it gives nothing. What is
computed is a few units of 2^-shift away from the truth at most, so it is enough to know that the truth is never that
close to a half without being one. Either the denominators are small enough to say so, or every integer that a single
term can be is looked at, in logarithmic time (`first_inside`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from ...base.records import dataclass

FEWEST_BITS = 8  # of a shift
HALVES = 64  # added to a shift: halves occur
MOST_TERMS = 3
REST = 3  # the largest rest of a half


@dataclass(frozen=True)
class FixedPoint:
    multipliers: tuple[int, ...]
    addend: int
    shift: int


def fixed_point(
    factors: Sequence[Fraction],
    constant: Fraction,
    ranges: Sequence[tuple[int, int]],
    low: int,
    high: int,
    unit: int = 1,
    proven: bool = True,
) -> FixedPoint | None:
    """`ranges`: the lowest and highest value of each term; terms are multiples of `unit`. Results below `low` and above
    `high` need only stay there. Factors are not negative. Not `proven`: what comes as close to a half as the numbers
    cannot tell from one is taken for one, whether it can occur or not."""
    count = len(factors)
    reach = sum(f * max(abs(a), abs(b)) for f, (a, b) in zip(factors, ranges, strict=True)) + abs(constant) + 1
    if count > MOST_TERMS or reach >= 1 << 30 or min(factors) < 0:
        return None
    # Terms of a longer sum must be short for the errors below.
    width = 31 if count == 1 or not proven else 25
    if any(a > b or max(-a, b + 1) > 1 << width for a, b in ranges):
        return None
    bits = 61 - _log2_above(reach)  # sums stay below 2^62
    if any(factors):
        bits = min(bits, 30 - _log2_above(max(factors)))  # multipliers stay below 2^63
    if bits < FEWEST_BITS:
        return None
    # What is computed is off by less than 1 and a quarter unit per term (floor, and the rounded multiplier), and half a
    # unit of the addend.
    distance = Fraction(2 * count + 1 + REST, 1 << bits)
    units = [(a // unit, b // unit) for a, b in ranges]
    halves = _halves([f * unit for f in factors], constant, units, low, high, distance) if proven else 1
    if halves is None:
        return None
    multipliers = tuple(round(f * (1 << (32 + bits))) for f in factors)
    addend = round((constant + Fraction(1, 2)) * (1 << bits))
    return FixedPoint(multipliers, addend + count * halves, bits + HALVES * halves)


def _log2_above(number: Fraction) -> int:
    """The smallest n with number < 2^n."""
    guess = number.numerator.bit_length() - number.denominator.bit_length()
    return guess if number < Fraction(2) ** guess else guess + 1


def _halves(
    factors: Sequence[Fraction],
    constant: Fraction,
    ranges: Sequence[tuple[int, int]],
    low: int,
    high: int,
    distance: Fraction,
) -> int | None:
    """0 where no result comes as close as `distance` to a half, 1 where those that do are halves, else None."""
    denominator = math.lcm(constant.denominator, *(f.denominator for f in factors))
    if 2 * denominator * distance < 1:
        return 1
    if len(factors) > 1 or not factors[0]:
        return None
    factor, (first, last) = factors[0], ranges[0]
    first = max(first, math.floor((low - 1 - constant) / factor))
    last = min(last, math.ceil((high + 1 - constant) / factor))
    if first > last:
        return 0
    # 2 * (factor * t + constant) * denominator is `denominator` modulo twice that where the result is a half.
    modulus, near = 2 * denominator, math.ceil(2 * denominator * distance)
    if near >= denominator:
        return None
    step = int(2 * factor * denominator)
    start = step * first + int(2 * constant * denominator)

    def meets(a: int, b: int) -> bool:
        return _meets(step, start, modulus, last - first, denominator + a, denominator + b)

    if not meets(-near, near):
        return 0
    return None if meets(-near, -1) or meets(1, near) else 1


def _meets(step: int, start: int, modulus: int, count: int, low: int, high: int) -> bool:
    """Is low <= (start + step * n) % modulus <= high for an n from 0 to count?"""
    a, b = (low - start) % modulus, (high - start) % modulus
    parts = [(a, b)] if a <= b else [(a, modulus - 1), (0, b)]
    found = (first_inside(step % modulus, modulus, *part) for part in parts)
    return any(n is not None and n <= count for n in found)


def first_inside(step: int, modulus: int, low: int, high: int) -> int | None:
    """The smallest n >= 0 with low <= step * n % modulus <= high, where 0 <= low <= high < modulus and
    0 <= step < modulus: as Euclid finds a divisor."""
    if low == 0:
        return 0
    if 2 * step > modulus:
        step, low, high = modulus - step, modulus - high, modulus - low
    if step == 0:
        return None
    n = -(-low // step)
    if n * step <= high:
        return n
    wraps = first_inside(modulus % step, step, -high % step, -low % step)
    return None if wraps is None else -(-(low + modulus * wraps) // step)
