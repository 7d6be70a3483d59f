"""What a gather means: one element of the result at a time."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.gather import Gather


def oracle(kind: Gather, x: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    result = np.empty(indices[0].shape, x.dtype)
    for place in np.ndindex(result.shape):
        result[place] = x[source(kind.axes, x.shape, indices, place)]
    return result


def source(
    axes: tuple[int, ...], shape: tuple[int, ...], indices: tuple[np.ndarray, ...], place: tuple[int, ...]
) -> tuple[int, ...]:
    """Where in a tensor of `shape` the element at `place` lies."""
    where = []
    for axis, size in zip(axes, shape, strict=True):
        if axis >= 0:
            where.append(place[axis])
            continue
        index = int(indices[-1 - axis][place])
        index += size if index < 0 else 0
        where.append(min(max(index, 0), size - 1))
    return tuple(where)
