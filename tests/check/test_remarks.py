"""Outputs that prove little are named."""

from __future__ import annotations

import numpy as np
import pytest

from mccompile.check.remarks import remark

CHANCE = np.random.default_rng(0)
VARIED = [CHANCE.standard_normal(20).astype(np.float32) for _ in range(3)]
CASES = {
    "one number": ([np.full(9, 0.5)] * 2, "constant: every element"),
    "the same each time": ([VARIED[0]] * 3, "constant: it is the same in every run"),
    "ends of bytes": ([np.where(each > 0, 127, -128).astype(np.int8) for each in VARIED], "saturated: 100%"),
    "certain of a class": ([np.where(each > 0, 1.0, 0.0) for each in VARIED], "saturated: 100%"),
    "not a number": ([np.full(4, np.nan)] * 2, "no element is finite"),
}


@pytest.mark.parametrize("case", CASES)
def test_what_proves_little(case: str) -> None:
    wanted, said = CASES[case]
    assert said in remark(wanted)


@pytest.mark.parametrize(
    "wanted",
    [
        VARIED,
        [VARIED[0]],  # one run cannot tell
        [np.tanh(each) for each in VARIED],
        [np.clip(each * 60, -128, 127).astype(np.int8) for each in VARIED],
        [np.array([3]), np.array([4])],  # two labels
        [[VARIED[0]], [VARIED[0]]],  # lists
    ],
)
def test_what_says_something(wanted: list[np.ndarray]) -> None:
    assert remark(wanted) == ""
