"""Winograd's method in integers, exactly: multiples of the transformed weights are integers, so the sums of products
are multiples of what a convolution sums up.

F(2x2, 3x3): 4 times, in 32 bits.

F(4x4, 3x3): 576 times, which do not fit 32 bits. Sums wrap, and what a convolution sums up follows from them if it has
26 bits with its sign: 576 is 64 * 9, and 9 has an inverse in 32 bits. A number of 8 bits with a sign stays within 16
bits in both transforms. What transformed weights of 16 bits have not been multiplied with is left to the transform of
the sums: 2 along an axis, for the last of six elements.
"""

from __future__ import annotations

import numpy as np

_WEIGHTS = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]])
ELEMENTS = 16  # of a tile: 4x4 inputs, for 2x2 results
LARGEST_WEIGHT = 9 * 128  # every row of the matrix sums up to 3 at most
LARGEST_INPUT = 4 * 255  # sums of four differences from a zero point
MOST_CHANNELS = (2**31 - 1) // (LARGEST_WEIGHT * LARGEST_INPUT)  # whose products fit a sum of 32 bits

_WEIGHTS_OF_SIX = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 12]])
TILE, ELEMENTS_OF_SIX = 4, 36  # results of a tile along an axis; its elements
LARGEST_WEIGHT_OF_SIX = 12 * 12 * 128
LARGEST_INPUT_OF_SIX = 10 * 10 * 128
MOST_CHANNELS_OF_SIX = (2**25 - 1) // (9 * 128 * 128)  # whose sums have 26 bits


def transformed_integers(w: np.ndarray) -> np.ndarray:
    """w[O, C, 3, 3] as [O, C, 16]: 4 times what `transformed_weights` of `winograd.py` gives."""
    return _transformed(w, _WEIGHTS)


def transformed_of_six(w: np.ndarray) -> np.ndarray:
    """w[O, C, 3, 3] as [O, C, 36], for F(4x4, 3x3)."""
    return _transformed(w, _WEIGHTS_OF_SIX)


def _transformed(w: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.einsum("ai,ocij,bj->ocab", matrix, w.astype(np.int32), matrix)
    return found.reshape(*w.shape[:2], -1).astype(np.int16)


def equal_runs(channels: int) -> int:
    """Into how many runs of an even number of channels they are cut, whose sums have 26 bits each."""
    allowed = (runs for runs in range(1, channels) if channels // runs <= MOST_CHANNELS_OF_SIX)
    return next(runs for runs in allowed if channels % (2 * runs) == 0)
