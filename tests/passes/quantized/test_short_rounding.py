"""Short fixed point: right for every sum, or not offered."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mccompile.passes.quantized.short_rounding import (
    FAR,
    Rescaling,
    ShortRounding,
    _near_whole,
    _places,
    short_number,
    short_numbers,
    short_rounding,
    short_roundings,
)

LOW, HIGH = -128, 127


def rounded(found: ShortRounding, t: Any, shift: int) -> Any:
    return (((t + found.bias) * found.raised * found.multiplier >> 32) + found.addend) >> shift


def inside(value: int) -> int:
    return min(max(value, LOW), HIGH)


def clipped(values: np.ndarray) -> np.ndarray:
    return np.clip(values, LOW, HIGH)


def nearest(t: np.ndarray, factor: Fraction) -> np.ndarray:
    """t * factor, a half to the even number."""
    below, rest = np.divmod(2 * t * factor.numerator + factor.denominator, 2 * factor.denominator)
    return below - ((rest == 0) & (below % 2 == 1))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.floats(2**-14, 2**-6),
    st.floats(-200, 200),
    st.integers(0, 4),
    st.tuples(st.integers(-60000, 0), st.integers(0, 60000)),
)
def test_every_sum_is_rounded_like_the_exact_number(f: float, c: float, shift: int, reach: tuple[int, int]) -> None:
    factor, constant = Fraction(f), Fraction(c)
    found = short_rounding(Rescaling(factor, constant, reach, LOW, HIGH), shift)
    if found is not None:
        for t in range(*reach, 7):
            assert inside(rounded(found, t, shift)) == inside(round(t * factor + constant))
        for step in range(LOW, HIGH):  # around every step
            near = int((step + Fraction(1, 2) - constant) / factor)
            for t in range(max(near - 2, reach[0]), min(near + 2, reach[1]) + 1):
                assert inside(rounded(found, t, shift)) == inside(round(t * factor + constant))


@pytest.mark.parametrize("power", [-90, -30, -12, -3, 0, 4])
def test_results_begin_where_the_exact_number_reaches_them(power: int) -> None:
    """Where many halves are met, where none is, and where steps are wider than 64 bits."""
    chance = np.random.default_rng(power + 100)
    for number in range(60):
        simple = number % 2 == 0
        factor = Fraction(int(chance.integers(1, 9)) if simple else float(chance.uniform(1, 2))) * Fraction(2) ** power
        constant = Fraction(int(chance.integers(-99, 99)), 2) if simple else factor * int(chance.integers(-9999, 9999))
        first, last = -int(chance.integers(0, 1 << 20)), int(chance.integers(0, 1 << 20))
        for step, place in enumerate(_places([Rescaling(factor, constant, (first, last), LOW, HIGH)])[0], LOW + 1):
            reached = [round(t * factor + constant) >= step for t in (int(place) - 1, int(place))]
            assert reached[0] is False or place == first
            assert reached[1] is True or place == last + 1


@pytest.mark.parametrize("may_raise", [False, True])
@pytest.mark.parametrize("number", range(20))
def test_channels_at_once_have_the_numbers_that_each_has_alone(number: int, may_raise: bool) -> None:
    """Also those for which the first offset does not do; none have any if one has none."""
    chance = np.random.default_rng(number)
    shift, reach = int(chance.integers(2, 13)), 1 << int(chance.integers(6, 18))
    channels = []
    for _ in range(6):
        factor = Fraction(float(np.float32(2.0 ** chance.uniform(-shift - 10, -shift))))
        constant = Fraction(int(chance.integers(-9, 9)), 2) if number % 3 else factor * int(chance.integers(-999, 999))
        channels.append(Rescaling(factor, constant, (-reach, reach), LOW, HIGH))
    for alone, at_once in ((short_rounding, short_roundings), (short_number, short_numbers)):
        each = tuple(alone(channel, shift, may_raise) for channel in channels)
        assert at_once(tuple(channels), shift, may_raise) == (() if None in each else each)
        for channel, found in zip(channels, each, strict=True):
            assert at_once((channel,), shift, may_raise) == (() if found is None else (found,))


def test_scales_of_trained_networks_are_found() -> None:
    """A bias is nearly a multiple of the factor; halves do not occur."""
    chance = np.random.default_rng(0)
    for _ in range(200):
        scales = 2.0 ** chance.uniform((-11, 0), (-6, 1)).astype(np.float32)
        factor = Fraction(float(scales[0])) * Fraction(float(scales[1]))
        bias = int(chance.integers(-(1 << 15), 1 << 15)) + Fraction(chance.uniform(-0.001, 0.001))
        assert short_rounding(Rescaling(factor, factor * bias, (-500000, 500000), LOW, HIGH), 4)


def test_factors_that_span_widely_share_a_shift_where_sums_are_raised() -> None:
    chance = np.random.default_rng(1)
    for power in range(-16, 0):
        factor = Fraction(float(np.float32(chance.uniform(1, 1.99) * 2.0**power)))
        reach = (-(1 << 14), 1 << 14)
        found = short_rounding(Rescaling(factor, factor * 77, reach, LOW, HIGH), 12, may_raise=True)
        assert found is not None and found.multiplier < 1 << 31
        assert (found.raised > 1) == (factor >= Fraction(1, 1 << 13))
        t = np.arange(*reach)
        assert np.all(np.abs((t + found.bias) * found.raised) < 1 << 31)
        np.testing.assert_array_equal(clipped(rounded(found, t, 12)), clipped(nearest(t + 77, factor)))


@pytest.mark.parametrize(("shift", "may_raise"), [(3, False), (12, True)])
def test_channels_whose_biases_are_whole_have_one_addend(shift: int, may_raise: bool) -> None:
    """And where sums are raised, the multiplier says how far."""
    chance = np.random.default_rng(2)
    found = 0
    for _ in range(40):
        factor = Fraction(float(np.float32(2.0 ** chance.uniform(-11, -4 if not may_raise else -1))))
        bias, reach = int(chance.integers(-20000, 20000)), (-(1 << 14), 1 << 14)
        number = short_number(Rescaling(factor, factor * bias, reach, LOW, HIGH), shift, may_raise)
        if number is None:
            continue
        found += 1
        assert number.addend == 1 << (shift - 1)
        assert not may_raise or number.raised == 1 << (number.multiplier & 31)
        t = np.arange(*reach)
        np.testing.assert_array_equal(clipped(rounded(number, t, shift)), clipped(nearest(t + bias, factor)))
    assert found > 30


def test_a_dead_channel_has_the_addend_of_all() -> None:
    for may_raise, shift in ((False, 3), (True, 12)):
        found = short_number(Rescaling(Fraction(1, 10**11), Fraction(-7, 3), (-90, 90), LOW, HIGH), shift, may_raise)
        assert found is not None and found.addend == 1 << (shift - 1)
        assert {rounded(found, t, shift) for t in (-90, 0, 90)} == {-2}


def test_channels_that_are_dead_are_found() -> None:
    found = short_rounding(Rescaling(Fraction(1, 10**11), Fraction(-7, 3), (-90000, 90000), LOW, HIGH), 4)
    assert found is not None
    assert {rounded(found, t, 4) for t in (-90000, 0, 90000)} == {-2}


def test_a_factor_that_hardly_matters_still_decides() -> None:
    factor, constant = Fraction(6.95e-7), Fraction(18.468)
    found = short_rounding(Rescaling(factor, constant, (-91290, 65025), LOW, HIGH), 2)
    assert found is not None
    step = int((Fraction(37, 2) - constant) / factor)
    assert [rounded(found, t, 2) for t in (-91290, step, step + 1, 65025)] == [18, 18, 19, 19]


def test_halves_go_to_the_even_neighbour_or_nothing_is_offered() -> None:
    assert short_rounding(Rescaling(Fraction(1, 64), Fraction(0), (-8192, 8128), LOW, HIGH), 4) is None
    found = short_rounding(Rescaling(Fraction(1, 64), Fraction(0), (-32, 95), LOW, HIGH), 4)
    assert found is not None
    assert [rounded(found, t, 4) for t in (-32, -31, 32, 33, 95)] == [0, 0, 0, 1, 1]


@pytest.mark.parametrize("factor", [Fraction(0), Fraction(-1, 64), Fraction(1, 2)])
def test_factors_out_of_reach_are_refused(factor: Fraction) -> None:
    assert short_rounding(Rescaling(factor, Fraction(0), (-100, 100), LOW, HIGH), 4) is None


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.floats(2**-14, 2**6) | st.fractions(0, 3, max_denominator=512), st.floats(-200, 200), st.sampled_from([1, 8]))
def test_the_moves_nearest_to_a_whole_number_are_found(unit: float | Fraction, rest: float, many: int) -> None:
    """As going through all of them does."""
    step, start = Fraction(unit), Fraction(rest)
    found = _near_whole(step, start, many)
    near = [abs(start - move * step - round(start - move * step)) for move in found]
    moves = np.arange(-FAR, FAR + 1)
    left = float(start % 1) - moves * float(step)
    least = np.sort(np.abs(left - np.rint(left)))[:many]
    assert len(set(found)) == many and all(abs(move) <= FAR for move in found)
    np.testing.assert_allclose([float(each) for each in near], least, atol=max(1e-8, 0.02 * float(least[-1])))
