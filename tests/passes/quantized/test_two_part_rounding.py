"""Multipliers in two parts: right where halves occur or come close, or not offered."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from mccompile.expr.functions import FUNCTIONS
from mccompile.passes.quantized.two_part_rounding import TwoPartRounding, two_part_rounding

BYTES = ((-128, 127), (-128, 127))


def rescaled(found: TwoPartRounding, terms: Sequence[int], zero: int, halves: bool) -> int:
    """What PartRescale computes."""
    total = found.addend + sum(t * m for t, m in zip(terms, found.multipliers, strict=True))
    if found.low:
        *low, addend = found.low
        total += addend + sum(t * m for t, m in zip(terms, low, strict=True)) >> found.low_bits
    assert abs(total) < 1 << 31
    value = int(FUNCTIONS["shift_even"].numpy(total, found.shift)) + zero if halves else total >> found.shift
    return min(max(value, -128), 127)


@pytest.mark.parametrize("zero", [0, 5])
@pytest.mark.parametrize(
    ("factors", "constant"),
    [((Fraction(1, 2), Fraction(3, 4)), Fraction(-7, 4)), ((Fraction(1, 6), Fraction(5, 6)), Fraction(1, 3))],
)
def test_halves_become_even_where_the_shift_does_that(
    factors: tuple[Fraction, ...], constant: Fraction, zero: int
) -> None:
    assert two_part_rounding(factors, constant, BYTES, -128, 127, zero) is None
    found = two_part_rounding(factors, constant, BYTES, -128, 127, zero, halves=True)
    assert found is not None and bool(found.low) == (factors[0].denominator == 6)
    for a, b in itertools.product(range(-128, 128, 5), range(-128, 128, 3)):
        exact = round(a * factors[0] + b * factors[1] + constant) + zero
        assert rescaled(found, (a, b), zero, True) == min(max(exact, -128), 127)


def test_sums_that_are_nearly_halves_are_told_apart() -> None:
    """Scales with few decimals, as floats have them: sums are a millionth beside a half."""
    scales = [Fraction(float(np.float32(number))) for number in (0.0527, 0.0254, 0.1)]
    factors = [scales[0] / scales[2], scales[1] / scales[2]]
    found = two_part_rounding(factors, Fraction(0), BYTES, -128, 127)
    assert found is not None
    for a, b in itertools.product(range(-128, 128), range(-128, 128, 3)):
        exact = round(a * factors[0] + b * factors[1])
        assert rescaled(found, (a, b), 0, False) == min(max(exact, -128), 127)


def test_a_long_term_leaves_few_bits_to_its_factor() -> None:
    found = two_part_rounding([Fraction(1, 4)], Fraction(3), [(-(1 << 16), 1 << 16)], -128, 127, halves=True)
    assert found is not None
    for t in (*range(-600, 600), -(1 << 16), 1 << 16):
        assert rescaled(found, (t,), 0, True) == min(max(round(Fraction(t, 4) + 3), -128), 127)


def test_more_sums_than_can_be_tried_are_refused() -> None:
    assert two_part_rounding([Fraction(1, 4)], Fraction(0), [(0, 1 << 20)], -128, 127, halves=True) is None
