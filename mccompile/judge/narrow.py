"""Floats of few bits: what they hold of a number."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any
# bits of the mantissa, least exponent of normal numbers, the largest number
NARROW = {
    "float16": (10, -14, 65504.0),
    "bfloat16": (7, -126, float(2.0**127 * (2 - 2.0**-7))),
    "float8_e4m3fn": (3, -6, 448.0),
    "float8_e4m3fnuz": (3, -7, 240.0),
    "float8_e5m2": (2, -14, 57344.0),
    "float8_e5m2fnuz": (2, -15, 57344.0),
    "float4_e2m1fn": (1, 0, 6.0),
}


def rounded_to(x: Array, name: str, saturate: bool = True) -> Array:
    """The nearest numbers of a narrow float, the even one of two."""
    if name not in NARROW:
        return x
    bits, least, largest = NARROW[name]
    exponent = np.maximum(np.frexp(np.where(np.isfinite(x), x, 0))[1] - 1, least)
    step = np.ldexp(1.0, exponent - bits)
    found = np.where(np.isfinite(x), np.rint(x / step) * step, x)
    beyond = np.abs(found) > largest
    if name in ("float16", "bfloat16"):
        return np.where(beyond & ~np.isnan(found), np.copysign(np.inf, found), found)
    if name == "float4_e2m1fn" or saturate:
        return np.where(beyond & ~np.isnan(found), np.copysign(largest, found), found)
    outside = np.copysign(np.inf, found) if name == "float8_e5m2" else np.nan
    return np.where(beyond & ~np.isnan(found), outside, found)
