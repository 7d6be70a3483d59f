"""What weakens a verdict of `ok`: outputs that are the same whatever goes in, or saturated, compare well with nearly
anything.

Invariant: it is said of the reference's outputs, whatever the compiled model gave.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

MOST = 0.95  # of elements at the ends of what a type or a function reaches
FEW = 8  # elements that may all be at an end by chance


def remark(wanted: Sequence[Any]) -> str:
    """Of one output in several runs; empty where there is nothing to say."""
    arrays = [each for each in wanted if isinstance(each, np.ndarray) and each.size]
    if not arrays or len(arrays) < len(wanted):
        return ""
    elements = np.concatenate([each.reshape(-1) for each in arrays])
    if elements.dtype.kind in "fc" and not np.isfinite(elements).any():
        return "no element is finite"
    if elements.size > 1 and all(each == elements[0] for each in elements.flat):
        return f"constant: every element of every run is {elements[0]}"
    if len(arrays) > 1 and all(np.array_equal(each, arrays[0]) for each in arrays):
        return "constant: it is the same in every run"
    if elements.size < FEW:
        return ""
    at_end = _at_ends(elements)
    return f"saturated: {at_end:.0%} of its elements are at an end of their range" if at_end >= MOST else ""


def _at_ends(elements: np.ndarray) -> float:
    """The share of elements that are the least or the most that they can be."""
    if elements.dtype.kind in "iu" and elements.dtype.itemsize == 1:
        ends = np.iinfo(elements.dtype)
        return float(np.mean((elements == ends.min) | (elements == ends.max)))
    if elements.dtype.kind != "f":
        return 0.0
    low, high = float(elements.min()), float(elements.max())
    if (low, high) not in ((0.0, 1.0), (-1.0, 1.0)):  # of Sigmoid, Softmax, Tanh
        return 0.0
    return float(np.mean((elements == low) | (elements == high)))
