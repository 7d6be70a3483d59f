"""Sums of two bytes: right for all of them, or not offered."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from mccompile.passes.quantized.byte_rounding import SHIFT_OF_ALL, byte_rounding

BYTES = ((-128, 127), (-128, 127))


def test_every_pair_of_bytes_is_rounded_like_the_exact_sum() -> None:
    chance = np.random.default_rng(1)
    for _ in range(20):
        factors = [Fraction(float(number)) for number in chance.uniform(-2.5, 2.5, 2).astype(np.float32)]
        constant = Fraction(float(chance.uniform(-90, 90)))
        found = byte_rounding(factors, constant, BYTES, -128, 127)
        assert found is not None
        assert all(abs(number) < 1 << 31 for number in found.multipliers)
        for a, b in chance.integers(-128, 128, (400, 2)).tolist():
            products = [(t << found.left) * m >> 32 for t, m in zip((a, b), found.multipliers, strict=True)]
            value = (sum(products) + found.addend) >> found.shift
            exact = round(a * factors[0] + b * factors[1] + constant)
            assert min(max(value, -128), 127) == min(max(exact, -128), 127)


def test_one_shift_suits_the_scales_of_every_training() -> None:
    chance = np.random.default_rng(2)
    for _ in range(40):
        factors = [Fraction(float(number)) for number in (2.0 ** chance.uniform(-5, 1.9, 2)).astype(np.float32)]
        constant = -sum(factor * int(zero) for factor, zero in zip(factors, chance.integers(-128, 128, 2), strict=True))
        assert byte_rounding(factors, Fraction(constant), BYTES, -128, 127, 0, (SHIFT_OF_ALL,)) is not None


def test_halves_to_even_are_not_offered() -> None:
    assert byte_rounding([Fraction(1, 2), Fraction(1, 2)], Fraction(0), BYTES, -128, 127) is None


def test_factors_out_of_reach_are_refused() -> None:
    assert byte_rounding([Fraction(1 << 20), Fraction(1)], Fraction(0), BYTES, -128, 127) is None
