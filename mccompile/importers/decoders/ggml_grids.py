"""Weights in the types IQ1, IQ2 and IQ3 of GGML: groups of 8 or 4 levels by their numbers in a table, and their signs.

Invariant: levels are those of the file, and scales are exact in float32.
"""

from __future__ import annotations

import numpy as np

from .grids import grid

Parts = tuple[np.ndarray, int, np.ndarray, np.ndarray | None]  # levels by block, bits, scales, offsets
_BITS = np.arange(8, dtype=np.uint8)


def _cut(b: np.ndarray, *sizes: int) -> list[np.ndarray]:
    return [np.ascontiguousarray(part) for part in np.split(b, np.cumsum(sizes), -1)]


def _half(data: np.ndarray) -> np.ndarray:
    return np.asarray(data.view(np.float16), np.float32)


def _parts(data: np.ndarray, *shifts: int) -> np.ndarray:
    """Of each number its bits from each of these on, one behind the other."""
    return np.asarray(data[..., None] >> np.array(shifts, data.dtype)).reshape(len(data), -1)


def _signed(levels: np.ndarray, negative: np.ndarray) -> np.ndarray:
    """negative: a bit for each level, in bytes."""
    return np.where((negative[..., None] >> _BITS & 1).reshape(levels.shape) > 0, -levels, levels)


def _evened(signs: np.ndarray) -> np.ndarray:
    """7 bits, and one that makes the number of ones even."""
    signs = (signs & 127).astype(np.uint8)
    ones = sum(signs >> bit & 1 for bit in range(7))
    return np.asarray(signs | (ones & 1) << 7, np.uint8)


def _found(name: str, places: np.ndarray) -> np.ndarray:
    return np.asarray(grid(name)[places]).reshape(len(places), -1)


def _quarters(half: np.ndarray, scales: np.ndarray, size: float = 0.25) -> np.ndarray:
    return np.asarray(_half(half) * (np.float32(0.5) + scales.astype(np.float32)) * np.float32(size))


def iq2_xxs(b: np.ndarray) -> Parts:
    half, rest = _cut(b, 2)
    words = rest.view(np.uint32).reshape(len(b), 8, 2)
    places = np.ascontiguousarray(words[..., 0]).view(np.uint8)
    signs = _evened(_parts(words[..., 1], 0, 7, 14, 21))
    return _signed(_found("IQ2_XXS", places), signs), 8, _quarters(half, words[..., 1] >> 28), None


def iq2_xs(b: np.ndarray) -> Parts:
    half, places, scales = _cut(b, 2, 64)
    places = places.view(np.uint16)
    levels = _signed(_found("IQ2_XS", places & 511), _evened(places >> 9))
    return levels, 8, _quarters(half, _parts(scales, 0, 4) & 15), None


def iq2_s(b: np.ndarray) -> Parts:
    half, low, signs, high, scales = _cut(b, 2, 32, 32, 8)
    places = low.astype(np.uint16) | (_parts(high, 0, 2, 4, 6) & 3).astype(np.uint16) << 8
    return _signed(_found("IQ2_S", places), signs), 8, _quarters(half, _parts(scales, 0, 4) & 15), None


def iq3_xxs(b: np.ndarray) -> Parts:
    half, places, rest = _cut(b, 2, 64)
    words = rest.view(np.uint32)
    levels = _signed(_found("IQ3_XXS", places), _evened(_parts(words, 0, 7, 14, 21)))
    return levels, 8, _quarters(half, words >> 28, 0.5), None


def iq3_s(b: np.ndarray) -> Parts:
    half, low, high, signs, scales = _cut(b, 2, 64, 8, 32)
    places = low.astype(np.uint16) | (_parts(high, *range(8)) & 1).astype(np.uint16) << 8
    return _signed(_found("IQ3_S", places), signs), 8, _quarters(half, _parts(scales, 0, 4) & 15, 2.0), None


def _eighths(places: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Levels times 8, and one more or less by `down` of each group."""
    levels = grid("IQ1")[places] * np.int8(8)
    return np.asarray(levels + np.where(down, -1, 1).astype(np.int8)[..., None], np.int8).reshape(len(places), -1)


def _odd(half: np.ndarray, scales: np.ndarray) -> np.ndarray:
    return np.asarray(half * (2 * (scales & 7) + 1).astype(np.float32) * np.float32(0.125))


def iq1_s(b: np.ndarray) -> Parts:
    half, low, high = _cut(b, 2, 32)
    high = high.view(np.uint16)
    places = low.astype(np.uint16) | (_parts(high, 0, 3, 6, 9) & 7) << 8
    down = np.repeat(high >> 15, 4, -1) > 0
    return _eighths(places, down), 8, _odd(_half(half), high >> 12), None


def iq1_m(b: np.ndarray) -> Parts:
    """The scale of all lies in the upper bits of the others."""
    low, high, scales = _cut(b, 32, 16)
    scales, high = scales.view(np.uint16), _parts(high, 0, 4)
    joined = np.bitwise_or.reduce(scales >> 12 << np.array([0, 4, 8, 12], np.uint16), -1).astype(np.uint16)
    places = low.astype(np.uint16) | (high & 7).astype(np.uint16) << 8
    return _eighths(places, high & 8 > 0), 8, _odd(_half(joined)[:, None], _parts(scales, 0, 3, 6, 9)), None
