"""What counts as equal, and how differences are measured."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.check.compare import compare

INF, NAN = np.inf, np.nan


def floats(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_nan_equals_nan_and_infinity_itself() -> None:
    assert compare("y", floats(NAN, INF, -INF), floats(NAN, INF, -INF)).ok


@pytest.mark.parametrize(("got", "want"), [(NAN, 1), (1, NAN), (INF, 1), (1, INF), (INF, -INF), (INF, NAN)])
def test_they_equal_nothing_else(got: float, want: float) -> None:
    found = compare("y", floats(got, 1), floats(want, 1))
    assert found.mismatches == 1 and found.max_abs == INF


def test_figures_are_of_the_worst_element_and_the_largest_reference() -> None:
    found = compare("y", floats(1, 2, -8.5), floats(1, 2.25, -8))
    assert (found.max_abs, found.max_rel, found.mismatches) == (0.5, 0.0625, 2)


def test_elements_may_be_a_thousandth_off() -> None:
    assert compare("y", floats(1.0009), floats(1)).ok
    assert not compare("y", floats(1.0011), floats(1)).ok


def test_small_elements_may_be_off_by_the_rounding_of_large_ones() -> None:
    assert compare("y", floats(1000, 5e-4), floats(1000, 0)).ok
    assert not compare("y", floats(1000, 5e-3), floats(1000, 0)).ok


def test_integers_are_exact_up_to_64_bits() -> None:
    big = np.array([2**63 - 1, -(2**63)], np.int64)
    assert compare("y", big, big).ok
    found = compare("y", big - np.array([1, 0]), big)
    assert (found.mismatches, found.max_abs) == (1, 1.0)
    assert compare("y", np.array([3], np.uint8), np.array([5], np.uint8)).max_abs == 2


def test_type_and_shape_must_fit() -> None:
    assert "float64" in compare("y", np.zeros(2), floats(0, 0)).why
    assert not compare("y", floats(0, 0), floats(0)).ok


def test_bools_strings_complex_and_nothing() -> None:
    assert compare("y", np.array([True, False]), np.array([True, True])).mismatches == 1
    assert compare("y", np.array(["a", "b"], object), np.array([b"a", "c"], object)).mismatches == 1
    assert compare("y", np.array([1 + 2j], np.complex64), np.array([1 + 2j], np.complex64)).ok
    assert compare("y", np.array([1 + 2j], np.complex64), np.array([1 + 3j], np.complex64)).mismatches == 1
    assert compare("y", np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)).ok
