"""What is said of the errors of sums agrees with what sums of 32-bit floats are off by."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mccompile.base import summation_error
from mccompile.base.summation_error import ANY, DIRECT, HALF_PLACE, LONGEST, PLAIN, SHORT, SHORTEST

TERMS = (27, 288, 2304)


def measured(terms: int, run: int) -> float:
    """The mean square of what products are off by that are summed in runs of so many terms, for inputs behind an
    activation, half of which are 0."""
    chance = np.random.default_rng(terms)
    x, w = (chance.standard_normal((400, terms)).astype(np.float32) for _ in range(2))
    products, total = np.maximum(x, 0).astype(np.float64) * w, np.zeros(400, np.float32)
    for first in range(0, terms, run):
        part = np.zeros(400, np.float32)
        for term in products[:, first : first + run].T:  # as fma does it, which rounds once
            part = (part + term).astype(np.float32)
        total = total + part if run < terms else part
    return float(np.mean((total - products.sum(1)) ** 2)) / (HALF_PLACE**2 * terms / 2)


@pytest.mark.parametrize("terms", TERMS)
def test_plain_sums(terms: int) -> None:
    assert 1 / 2 < summation_error.plain(terms) / measured(terms, terms) < 2


@pytest.mark.parametrize("terms", TERMS)
def test_sums_in_short_runs(terms: int) -> None:
    assert 1 / 2 < summation_error.in_short_runs(terms) / measured(terms, summation_error.short_run(terms)) < 2


@pytest.mark.parametrize("terms", [0, 1, 27, 63, 64, 288, 2304, 1 << 20])
def test_short_runs_are_about_as_many_as_their_terms(terms: int) -> None:
    run, root = summation_error.short_run(terms), min(max(math.sqrt(terms), SHORTEST), LONGEST)
    assert SHORTEST <= run <= LONGEST and 0.7 < run / root < 1.42


@pytest.mark.parametrize("terms", TERMS)
def test_short_runs_are_never_worse(terms: int) -> None:
    assert summation_error.in_short_runs(terms) < summation_error.plain(terms)


def test_a_sum_of_one_run_is_a_plain_one() -> None:
    assert summation_error.in_short_runs(SHORTEST) == summation_error.plain(SHORTEST)


@pytest.mark.parametrize("terms", TERMS)
def test_each_level_allows_what_it_says(terms: int) -> None:
    allowed = [summation_error.allowed(asked, terms) for asked in (ANY, PLAIN, SHORT, DIRECT)]
    plain = summation_error.plain(terms)
    assert allowed == [math.inf, plain, plain, summation_error.in_short_runs(terms)]
