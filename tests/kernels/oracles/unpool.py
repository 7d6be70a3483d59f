"""unpool in numpy: through a flat tensor of the inner shape."""

from __future__ import annotations

import numpy as np

from mccompile.base.dims import static
from mccompile.kinds.unpool import Unpool


def oracle(kind: Unpool, x: np.ndarray, places: np.ndarray) -> np.ndarray:
    flat = np.zeros(int(np.prod(kind.inner)), x.dtype)
    for value, place in zip(x.reshape(-1), places.reshape(-1), strict=True):
        if 0 <= place < flat.size:
            flat[place] = value
    y = np.zeros([static(size) for size in kind.shape], x.dtype)
    y[tuple(slice(0, size) for size in kind.inner)] = flat.reshape(kind.inner)
    return y
