"""roi_max_pool in numpy: every cell looked at on its own."""

from __future__ import annotations

import math

import numpy as np

from mccompile.kinds.roi_max_pool import RoiMaxPool


def oracle(kind: RoiMaxPool, x: np.ndarray, regions: np.ndarray) -> np.ndarray:
    y = np.zeros((len(regions), x.shape[1], *kind.cells), x.dtype)
    for r, region in enumerate(regions.astype(np.float64)):
        if not -1 < region[0] < x.shape[0]:
            continue
        image = x[int(region[0])]
        corners = [math.floor(abs(v * kind.scale) + 0.5) * (1 if v >= 0 else -1) for v in region[1:]]
        for cell in np.ndindex(*kind.cells):
            part = []
            for axis, low, high in ((0, corners[1], corners[3]), (1, corners[0], corners[2])):
                size = max(high - low + 1, 1)
                first = low + cell[axis] * size // kind.cells[axis]
                end = low - (-(cell[axis] + 1) * size // kind.cells[axis])
                part.append(slice(max(first, 0), max(end, 0)))
            window = image[(slice(None), *part)]
            if window.size:
                y[(r, slice(None), *cell)] = window.reshape(x.shape[1], -1).max(-1)
    return y
