"""Winograd's F(2x2, 3x3) in integers: 4 times the transformed weights are integers, so the sums of products are exact,
4 times what a convolution sums up."""

from __future__ import annotations

import numpy as np

_WEIGHTS = np.array([[2, 0, 0], [1, 1, 1], [1, -1, 1], [0, 0, 2]])
ELEMENTS = 16  # of a tile: 4x4 inputs, for 2x2 results
LARGEST_WEIGHT = 9 * 128  # every row of the matrix sums up to 3 at most
LARGEST_INPUT = 4 * 255  # sums of four differences from a zero point
MOST_CHANNELS = (2**31 - 1) // (LARGEST_WEIGHT * LARGEST_INPUT)  # whose products fit a sum of 32 bits


def transformed_integers(w: np.ndarray) -> np.ndarray:
    """w[O, C, 3, 3] as [O, C, 16]: 4 times what `transformed_weights` of `winograd.py` gives."""
    found: np.ndarray = np.einsum("ai,ocij,bj->ocab", _WEIGHTS, w.astype(np.int32), _WEIGHTS)
    return found.reshape(*w.shape[:2], ELEMENTS).astype(np.int16)
