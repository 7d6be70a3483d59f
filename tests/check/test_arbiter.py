"""Doubles decide which of two floats is right."""

from __future__ import annotations

import numpy as np

from mccompile.check.arbiter import arbitrate
from mccompile.check.compare import ATOL, OF_LARGEST, RTOL

RIGHT = np.array([1.0, 1e-5, -3.0])


def verdict(got: list[float], reference: list[float]) -> bool:
    one, other = (np.array(each, np.float32) for each in (got, reference))
    return arbitrate("y", one, other, RIGHT, RTOL, ATOL, OF_LARGEST).ok


def test_what_is_right_is_right_though_the_reference_is_not() -> None:
    assert verdict([1.0, 1e-5, -3.0], [1.0, 3e-5, -3.0])
    assert verdict([1.0, 1e-5, -3.0], [1.0, 500.0, -3.0])


def test_what_is_nearer_than_the_reference_is_right() -> None:
    assert verdict([1.0, 2e-5, -3.0], [1.0, 3e-5, -3.0])


def test_what_is_further_is_not() -> None:
    assert not verdict([1.0, 4e-5, -3.0], [1.0, 3e-5, -3.0])


def test_a_wrong_reference_excuses_nothing() -> None:
    assert not verdict([1.0, 200.0, -3.0], [1.0, 500.0, -3.0])


def test_integers_have_no_doubles() -> None:
    got = np.array([1, 2])
    assert not arbitrate("y", got, got, RIGHT, RTOL, ATOL, OF_LARGEST).ok
