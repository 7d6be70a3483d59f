"""Which of two results is right: where one is not what the reference says, the same model computed in doubles decides.

Invariant: a float is right that is as near to the doubles as a comparison asks, or that is nearer to them than the
reference, whose own error is taken for rounding only while it is small; anything else is right that is equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compare import Comparison, compare

ROUNDING = 1e-3  # of the largest element: the most that a reference's error counts for


def arbitrate(
    name: str, got: Any, wanted: Any, doubles: Any, rtol: float, atol: float, of_largest: float
) -> Comparison:
    """The comparison with the doubles; with the reference where there are none."""
    if _is_whole(got) and _is_whole(doubles) and got.shape == doubles.shape:
        return compare(name, got, doubles.astype(got.dtype), rtol, atol, of_largest)
    arrays = [each for each in (got, wanted, doubles) if isinstance(each, np.ndarray)]
    if len(arrays) < 3 or got.dtype.kind != "f" or doubles.dtype.kind != "f" or len({a.shape for a in arrays}) > 1:
        return Comparison(name, 0.0, 0.0, 0, "it has no doubles")
    finite = np.isfinite(doubles)
    largest = float(np.max(np.abs(doubles[finite]), initial=0.0))
    with np.errstate(invalid="ignore", over="ignore"):
        own = np.abs(wanted.astype(np.float64) - doubles)
        ours = np.abs(got.astype(np.float64) - doubles)
    nearer = finite & (ours <= own) & (own <= ROUNDING * largest)
    exact = np.where(nearer, got, doubles.astype(got.dtype)).astype(got.dtype)
    return compare(name, got, exact, rtol, atol, of_largest)


def _is_whole(array: Any) -> bool:
    return isinstance(array, np.ndarray) and array.dtype.kind in "iubO"
