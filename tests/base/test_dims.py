"""Arithmetic with sizes that are known only at run time: what is always equal is one dimension, and bounds hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mccompile.base.dims import Dim, bounds, evaluate, maximum, minimum, symbol

N, M = symbol("n", 1, 40), symbol("m", 0, 9)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((N - 1) // 2 + 1, (N + 1) // 2),
        ((N // 2) // 3, N // 6),
        (((N + 1) // 2 + 1) // 2, (N + 3) // 4),
        ((32 * N - 1) // 2 + 1, 16 * N),
        (maximum(0, ((N + 2) // 3 - 1) * 3 + 5 - N), ((N + 2) // 3 - 1) * 3 + 5 - N),
        (minimum((N + 255) // 256 + 8, N // 256 + 1), N // 256 + 1),
    ],
)
def test_what_is_always_equal_is_one_dimension(a: Dim, b: Dim) -> None:
    assert a == b


@pytest.mark.parametrize(
    ("dim", "want"),
    [
        (2 * ((N + 1) // 2) - N, (0, 1)),
        (N // 4 - (N + 3) // 4, (-1, 0)),
        (N - 7 * (N // 7), (0, 6)),
        (3 * (N // 2) - 3 * ((N + 1) // 2), (-3, 0)),
    ],
)
def test_terms_that_move_together_have_the_bounds_of_their_difference(dim: Dim, want: tuple[int, int]) -> None:
    assert bounds(dim) == want


NUMBERS = st.integers(-9, 9)
DIMS: st.SearchStrategy[Dim] = st.recursive(
    st.sampled_from([N, M]) | NUMBERS,
    lambda some: st.one_of(
        st.builds(lambda a, b: a + b, some, some),
        st.builds(lambda a, b: a - b, some, some),
        st.builds(lambda a, b: a * b, some, NUMBERS),
        st.builds(lambda a, b: a // b, some, st.integers(1, 7)),
        st.builds(minimum, some, some),
        st.builds(maximum, some, some),
    ),
    max_leaves=8,
)


@given(DIMS, st.integers(1, 40), st.integers(0, 9))
def test_bounds_hold(dim: Dim, n: int, m: int) -> None:
    low, high = bounds(dim)
    assert low <= evaluate(dim, {"n": n, "m": m}) <= high


@given(DIMS, DIMS, st.integers(1, 9), st.integers(1, 40), st.integers(0, 9))
def test_arithmetic_is_that_of_numbers(a: Dim, b: Dim, divisor: int, n: int, m: int) -> None:
    sizes = {"n": n, "m": m}
    left, right = evaluate(a, sizes), evaluate(b, sizes)
    assert evaluate(a + b, sizes) == left + right
    assert evaluate((a - b) // divisor, sizes) == (left - right) // divisor
    assert evaluate(minimum(a, b), sizes) == min(left, right)
