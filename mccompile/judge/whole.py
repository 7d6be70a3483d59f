"""Numbers as integers of a type, where the standard does not say which: what implementations make of them.

Invariant: a candidate is what some implementation gives for every element, so that one choice goes together in a model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .rules import Array, NodeSite

LIMITS = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}
_NEAR = 2.0**-40  # of the size of its terms: what float64 leaves of a whole number


def limits(name: str) -> tuple[int, int]:
    """The least and the most of an integer type."""
    if name in LIMITS:
        return LIMITS[name]
    about = np.iinfo(name)
    return int(about.min), int(about.max)


def stored(name: str) -> Any:
    """The numpy type that integers of a type lie in."""
    return {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8}.get(name, name)


def next_to(at: NodeSite, x: Array, to: str, size: float, why: str) -> Array:
    """One of the two integers that a real number lies between, made of terms of a `size`."""
    nearest = np.rint(x)
    x = np.where(np.abs(x - nearest) <= _NEAR * max(size, 1.0), nearest, x)
    ways = np.floor(x), np.ceil(x), np.trunc(x), nearest, np.floor(x + 0.5), np.copysign(np.floor(np.abs(x) + 0.5), x)
    return within(at, at.left_open(why, *ways), to, why)


def within(at: NodeSite, whole: Array, to: str, why: str) -> Array:
    """Whole numbers, NaN and infinities in an integer type, which may not hold them."""
    low, high = limits(to)
    outside = ~((whole >= low) & (whole < high + 1.0))
    inside = np.where(outside, 0.0, whole).astype(stored(to))
    if not outside.any():
        return inside
    none, least, most = (np.full_like(inside, end) for end in (0, low, high))
    end = np.where(whole > 0, most, least)
    ways = (
        np.where(np.isnan(whole), none, end),
        least,
        _wrapped(whole, to),
        np.where(np.isnan(whole), most, end),
        most,
        none,
    )
    return at.left_open(why, *(np.where(outside, way, inside) for way in ways))


def _wrapped(whole: Array, to: str) -> Array:
    """The low bits."""
    low, high = limits(to)
    exact = [int(each) if np.isfinite(each) else 0 for each in np.asarray(whole).reshape(-1)]
    found = [(each - low) % (high - low + 1) + low for each in exact]
    return np.array(found, stored(to)).reshape(np.shape(whole))
