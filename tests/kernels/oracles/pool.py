"""pool in numpy: every window looked at on its own."""

from __future__ import annotations

import numpy as np

from mccompile.base.dims import static
from mccompile.expr.evaluate import evaluate
from mccompile.kinds.pool import Pool


def oracle(kind: Pool, x: np.ndarray, *extras: np.ndarray) -> np.ndarray:
    rank = len(kind.kernel)
    space = tuple(static(size) for size in kind.space)
    wide = x.astype(np.float64)
    y = np.zeros((*x.shape[:2], *space), np.float64)
    for place in np.ndindex(*space):
        taps = [
            [o * kind.strides[a] - kind.pads[a] + t * kind.dilations[a] for t in range(kind.kernel[a])]
            for a, o in enumerate(place)
        ]
        inside = [[i for i in axis if 0 <= i < x.shape[a + 2]] for a, axis in enumerate(taps)]
        padded = [[i for i in axis if i < x.shape[a + 2] + kind.pads[rank + a]] for a, axis in enumerate(taps)]
        window = wide[(slice(None), slice(None), *np.ix_(*inside))].reshape(*x.shape[:2], -1)
        count = np.prod([len(axis) for axis in (padded if kind.count_include_pad else inside)])
        if kind.algorithm == "max":
            value = window.max(-1)
        elif kind.algorithm == "sum":
            value = window.sum(-1)
        elif kind.algorithm == "average":
            value = window.sum(-1) / count
        else:
            value = (np.abs(window) ** kind.p).sum(-1) ** (1 / kind.p)
        y[(slice(None), slice(None), *place)] = value
    element = y.astype(kind.accumulator.numpy)
    return element if kind.epilogue is None else evaluate(kind.epilogue, [element, *extras], element.shape)
