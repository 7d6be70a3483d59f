"""What sampling on a grid means: one place at a time, as the standard's text and PyTorch have it."""

from __future__ import annotations

import itertools
import math

import numpy as np

from mccompile.kinds.grid_sample import GridSample


def oracle(kind: GridSample, x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    space = x.shape[2:]
    result = np.empty((*x.shape[:2], *grid.shape[1:-1]), np.float64)
    for batch, *out in np.ndindex(grid.shape[:-1]):
        taps = [
            _taps(kind, grid.dtype.type(place), size)
            for place, size in zip(grid[(batch, *out)][::-1], space, strict=True)
        ]
        total = np.zeros(x.shape[1])
        for combination in itertools.product(*taps):
            weight = math.prod(w for _, w in combination)
            places = [place for place, _ in combination]
            if None not in places:
                total += weight * x[(batch, slice(None), *places)].astype(np.float64)
        result[(batch, slice(None), *out)] = total
    return result.astype(x.dtype)


def _taps(kind: GridSample, place: np.floating, size: int) -> list[tuple[int | None, float]]:
    """Position (None: outside) and weight of each element that counts along one axis."""
    one, two = type(place)(1), type(place)(2)
    v = (place + one) / two * (size - 1) if kind.align_corners else ((place + one) * size - one) / two
    v = float(np.rint(v) if kind.mode == "nearest" else v)
    low, high = (0.0, size - 1.0) if kind.align_corners else (-0.5, size - 0.5)
    if kind.padding == "border" and kind.mode != "cubic":
        v = min(max(v, 0.0), size - 1.0)
    elif kind.padding == "reflection":
        v = _reflected(v, low, high)
    first = math.floor(v)
    if kind.mode == "nearest":
        return [(_inside(kind, math.trunc(v), size, low, high), 1.0)]
    if kind.mode == "linear":
        return [(_inside(kind, first + n, size, low, high), abs(1 - n - (v - first))) for n in range(2)]
    return [(_inside(kind, first + n, size, low, high), _cubic(abs(v - first - n))) for n in range(-1, 3)]


def _cubic(d: float, a: float = -0.75) -> float:
    return (a + 2) * d**3 - (a + 3) * d**2 + 1 if d <= 1 else a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a


def _reflected(v: float, low: float, high: float) -> float:
    while high > low and not low <= v <= high:
        v = 2 * low - v if v < low else 2 * high - v
    return v if high > low else low


def _inside(kind: GridSample, i: int, size: int, low: float, high: float) -> int | None:
    if kind.padding == "zeros":
        return i if 0 <= i < size else None
    if kind.padding == "border":
        return min(max(i, 0), size - 1)
    return int(_reflected(float(i), low, high))
