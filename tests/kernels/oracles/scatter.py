"""What a scatter means: one update after the other."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.scatter import Scatter

REDUCTIONS = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def oracle(kind: Scatter, x: np.ndarray, updates: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    result = x.copy()
    for place in np.ndindex(updates.shape):
        where = []
        for axis, size in zip(kind.axes, x.shape, strict=True):
            index = place[axis] if axis >= 0 else int(indices[-1 - axis][place])
            index += size if index < 0 else 0
            where.append(min(max(index, 0), size - 1))
        old, new = result[tuple(where)], updates[place]
        if kind.reduction is not None:
            with np.errstate(over="ignore"):
                new = REDUCTIONS[str(kind.reduction).split("(")[0]](old, new)
        result[tuple(where)] = new
    return result
