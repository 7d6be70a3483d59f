"""Fixed-point numbers against exact fractions: every value that a term can take, or those near a half."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
import pytest

from mccompile.base.dtypes import i32, i64, u8
from mccompile.expr.evaluate import evaluate
from mccompile.expr.ir import apply, operand
from mccompile.passes.quantized.fixed_point import FixedPoint, first_inside, fixed_point
from tests.thorough import some

PRODUCT = apply("fixed_product", operand(0, i32), operand(1, i64))
EXPR = apply("fixed_round", apply("add", PRODUCT, operand(2, i64)), operand(3, u8))


def rounded(found: FixedPoint, terms: np.ndarray) -> np.ndarray:
    multiplier, addend = np.array(found.multipliers[0], np.int64), np.array(found.addend, np.int64)
    shift = np.array(found.shift, np.uint8)
    return evaluate(EXPR, [terms.astype(np.int32), multiplier, addend, shift], terms.shape)


def as_float32(number: float) -> Fraction:
    return Fraction(float(np.float32(number)))


def wrong(
    found: FixedPoint, factor: Fraction, constant: Fraction, terms: Sequence[int], low: int, high: int
) -> list[int]:
    got = np.clip(rounded(found, np.array(terms)), low, high)
    want = [min(max(round(factor * t + constant), low), high) for t in terms]
    return [t for t, a, b in zip(terms, got.tolist(), want, strict=True) if a != b]


@some(3, "seed", range(8))
def test_every_term(seed: int) -> None:
    random.seed(seed)
    scales = [as_float32(random.uniform(0.001, 0.1)) for _ in range(3)]
    factor = scales[0] * scales[1] / scales[2]
    constant = as_float32(random.uniform(-3, 3)) / scales[2]
    found = fixed_point([factor], constant, [(-4000, 4000)], -128, 127)
    assert found is not None
    assert not wrong(found, factor, constant, range(-4000, 20001), -128, 127)


@pytest.mark.parametrize(
    ("factor", "constant"),
    [
        (Fraction(1, 2), Fraction(0)),
        (Fraction(1, 64), Fraction(1, 2)),
        (Fraction(3, 2), Fraction(7)),
        (Fraction(1, 6), Fraction(0)),  # halves that no binary fraction hits
        (Fraction(5, 14), Fraction(-9, 14)),
        (Fraction(0), Fraction(5, 2)),
        (Fraction(1, 1 << 40), Fraction(3, 2)),
    ],
)
def test_halves_go_to_even(factor: Fraction, constant: Fraction) -> None:
    found = fixed_point([factor], constant, [(-3000, 3000)], -(1 << 20), 1 << 20)
    assert found is not None
    assert not wrong(found, factor, constant, range(-3000, 3001), -(1 << 20), 1 << 20)


def nearest(factor: Fraction, most: int) -> Iterator[int]:
    """Denominators of the fractions that come ever nearer to a factor from one side, up to `most`. Of long runs on one
    side, each of which is nearer than the one before, the first and last."""
    before, now, rest = 0, 1, factor
    while rest.denominator > 1 and now < most:
        rest = 1 / (rest - int(rest))
        count = min(int(rest), (most - before) // now)
        ends = range(1, count + 1) if count < 2000 else (*range(1, 1000), *range(count - 1000, count + 1))
        yield from (before + number * now for number in ends)
        before, now = now, before + int(rest) * now


def test_terms_that_come_closest_to_a_half() -> None:
    """Numbers that 31 bits get wrong: convergents of the factor."""
    factor = Fraction(0.0123456789)
    terms = {number // 2 + extra for number in nearest(factor, (1 << 31) - 1) for extra in (-1, 0, 1)}
    assert max(terms) > 1 << 29
    found = fixed_point([factor], Fraction(0), [(-(1 << 30), 1 << 30)], -(1 << 25), 1 << 25)
    assert found is not None
    assert not wrong(found, factor, Fraction(0), sorted(terms), -(1 << 25), 1 << 25)


@pytest.mark.parametrize("seed", range(5))
def test_two_terms(seed: int) -> None:
    random.seed(seed)
    scales = [as_float32(random.uniform(0.01, 0.1)) for _ in range(3)]
    if seed == 0:  # halves
        scales = [Fraction(1, 32), Fraction(1, 32), Fraction(3, 32)]
    factors = [scales[0] / scales[2] / 65536, scales[1] / scales[2] / 65536]
    constant = 65536 * (-factors[0] * 3 + factors[1] * 11)
    found = fixed_point(factors, constant, [(-128 << 16, 127 << 16)] * 2, -128, 127)
    assert found is not None
    bits = found.shift & 63
    for a in range(-128 << 16, 128 << 16, 11 << 16):
        for b in range(-128 << 16, 128 << 16, 1 << 16):
            total = sum(t * m >> 32 for t, m in zip((a, b), found.multipliers, strict=True)) + found.addend
            whole = total >> bits
            if found.shift >= 64 and total & ((1 << bits) - 1) <= 3:
                whole -= whole & 1
            assert whole == round(factors[0] * a + factors[1] * b + constant)


def test_what_does_not_fit_is_refused() -> None:
    assert fixed_point([Fraction(1 << 20)], Fraction(0), [(0, 1 << 20)], -128, 127) is None
    assert fixed_point([Fraction(1, 3)], Fraction(0), [(0, 1 << 40)], -128, 127) is None


def test_the_first_multiple_inside() -> None:
    random.seed(0)
    for _ in range(500):
        modulus = random.randrange(1, 200)
        step = random.randrange(modulus)
        low = random.randrange(modulus)
        high = random.randrange(low, min(modulus, low + 5))
        want = next((n for n in range(modulus) if low <= step * n % modulus <= high), None)
        assert first_inside(step, modulus, low, high) == want
