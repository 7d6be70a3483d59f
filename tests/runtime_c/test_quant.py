"""Fixed-point products and rounding at the ends of their ranges; expected values come from Python's integers."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np

Runtime = Callable[..., np.ndarray]

TERMS = [-(1 << 31), -(1 << 31) + 1, -65537, -3, -1, 0, 1, 2, 65535, (1 << 31) - 1]
MULTIPLIERS = [0, 1, (1 << 31) + 5, (1 << 32) - 1, 1 << 32, (1 << 62) + 12345, (1 << 63) - 1]


def test_products_keep_all_bits_above_the_point(runtime: Runtime) -> None:
    pairs = [(t, m) for t in TERMS for m in MULTIPLIERS]
    terms = np.array([t for t, _ in pairs], np.int32)
    found = runtime("fixed_product", terms, np.array([m for _, m in pairs], np.int64), np.int64)
    assert found.tolist() == [t * m >> 32 for t, m in pairs]


def test_a_rest_near_zero_is_a_half_where_halves_occur(runtime: Runtime) -> None:
    sums = [
        (whole << bits) + rest for whole in (-4, -3, -1, 0, 1, 2, 7) for bits in (8, 40) for rest in (0, 1, 3, 4, 200)
    ]
    bits = [bits for _ in (-4, -3, -1, 0, 1, 2, 7) for bits in (8, 40) for _ in range(5)]
    want = [total >> b for total, b in zip(sums, bits, strict=True)]
    found = runtime("fixed_round", np.array(sums, np.int64), np.array(bits, np.uint8), np.int32)
    assert found.tolist() == want
    even = [w - (w & 1) if total - (w << b) <= 3 else w for total, b, w in zip(sums, bits, want, strict=True)]
    found = runtime("fixed_round", np.array(sums, np.int64), np.array(bits, np.uint8) + np.uint8(64), np.int32)
    assert found.tolist() == even


def test_sums_a_little_below_a_whole_number_become_even(runtime: Runtime) -> None:
    cases = [((whole << bits) - less, bits) for bits in (2, 8, 20) for whole in range(-4, 5) for less in range(7)]
    sums, bits = (np.array(column, np.int32) for column in zip(*cases, strict=True))
    below = (-sums) & ((1 << bits) - 1)
    halves = np.where((below >= 1) & (below <= 4), 1, 0) | (bits == 2)
    whole = sums >> bits
    want = np.where(halves & (below > 0) | (bits == 2) & (below == 0), whole + (whole & 1), whole)
    assert runtime("shift_even", sums, bits, np.int32).tolist() == want.tolist()


def test_a_shift_rounds_halves_to_even(runtime: Runtime) -> None:
    cases = [
        ((whole << bits) + rest, bits)
        for bits in (32, 33, 40, 53, 60)
        for whole in (0, 1, 2, 3, 6, 1000, (1 << 31) - 2)
        if whole << bits < 1 << 63
        for rest in (0, 1, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits - 1) + 1 & (1 << bits) - 1, (1 << bits) - 1)
    ]
    sums = np.array([total for total, _ in cases], np.uint64)
    found = runtime("even_shift", sums, np.array([bits for _, bits in cases], np.uint8), np.uint32)
    assert found.tolist() == [round(Fraction(total, 1 << bits)) for total, bits in cases]


def test_an_inverse_root_is_as_close_as_it_says(runtime: Runtime) -> None:
    source = random.Random(1)
    edges = [1, 2, 3, 4, 5, (1 << 60) - 1, 1 << 60, (1 << 60) + 1, (1 << 62) - 1]
    numbers = edges + [source.randrange(1, 1 << source.randrange(1, 63)) for _ in range(3000)]
    found = runtime("inverse_root", np.array(numbers, np.uint64), out=np.empty((2, len(numbers)), np.int32))
    for number, root, moved in zip(numbers, *found.tolist(), strict=True):
        assert 1 << 29 <= root <= 1 << 30
        # (root * 2^(moved - 60))^2 * number is 1 up to twice the relative error of the root
        assert abs(Fraction(root * root * number) * Fraction(4) ** (moved - 60) - 1) <= Fraction(2, 1 << 27)
