"""How far functions of our own on arrays, `void own_NAME(const float *x, float *y, size_t count)`, are from doubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mccompile.toolchain.build import Library


def computed(own: Library, name: str, x: np.ndarray) -> np.ndarray:
    y = np.empty_like(x)
    getattr(own.functions, f"own_{name}")(own.ffi.from_buffer("float[]", x), own.ffi.from_buffer("float[]", y), x.size)
    return y


def most_ulp(own: Library, name: str, function: Callable[[Any], Any], x: np.ndarray) -> float:
    """The most, of numbers. What is infinity or NaN has to be the same, and so has the sign of a zero of zero."""
    y = computed(own, name, x)
    with np.errstate(all="ignore"):
        exact = function(x.astype(np.float64))
        expected = exact.astype(np.float32)
        numbers = np.isfinite(expected)
        ulps = np.abs(y - exact)[numbers] / np.spacing(np.abs(expected[numbers]))
    np.testing.assert_array_equal(y[~numbers], expected[~numbers])
    zero = (x == 0) & (expected == 0)
    np.testing.assert_array_equal(np.signbit(y[zero]), np.signbit(x[zero]), "sign of zero")
    return float(ulps.max())
