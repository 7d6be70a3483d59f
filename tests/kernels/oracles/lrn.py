"""lrn in numpy: the sum over neighbours, channel by channel."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.lrn import Lrn


def oracle(kind: Lrn, x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64)
    result = np.empty_like(wide)
    for c in range(x.shape[1]):
        low = max(0, c - (kind.size - 1) // 2)
        high = min(x.shape[1] - 1, c + int(np.ceil((kind.size - 1) / 2)))
        squares = np.square(wide[:, low : high + 1]).sum(axis=1)
        result[:, c] = wide[:, c] / (kind.bias + kind.alpha / kind.size * squares) ** kind.beta
    return result.astype(x.dtype)
