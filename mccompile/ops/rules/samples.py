"""Where an element of a resized row or column lies in the one that it is made of: OpenCV's numbers, in its steps.

OpenCV divides twice, so what would be a whole number may lie just below it; floats round what doubles have computed.
"""

from __future__ import annotations

import numpy as np


def nearest(size: int, out: int) -> np.ndarray:
    """INTER_NEAREST: the element that each of `out` takes."""
    return np.asarray(np.minimum(np.floor(np.arange(out) * (1 / (out / size))), size - 1), np.int64)


def linear(size: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    """INTER_LINEAR: the first of two elements, -1 to size - 1, and the share of the second, in float."""
    place = ((np.arange(out) + 0.5) * (1 / (out / size)) - 0.5).astype(np.float32)
    first = np.floor(place)
    return first.astype(np.int64), place - first


def enlarged(size: int, out: int) -> tuple[np.ndarray, np.ndarray]:
    """The same of INTER_AREA where a side gets larger."""
    ratio = out / size
    first = np.floor(np.arange(out) * (1 / ratio))
    share = (np.arange(1, out + 1) - (first + 1) * ratio).astype(np.float32)
    return first.astype(np.int64), np.where(share <= 0, np.float32(0), share - np.floor(share))


def inside(first: np.ndarray, share: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Of both kinds: nothing of an element outside."""
    share = np.where((first < 0) | (first >= size - 1), np.float32(0), share)
    return np.clip(first, 0, size - 1), share
