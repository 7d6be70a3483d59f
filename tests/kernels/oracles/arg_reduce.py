"""arg_reduce in numpy."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.arg_reduce import ArgReduce


def oracle(kind: ArgReduce, x: np.ndarray) -> np.ndarray:
    find = np.argmax if kind.largest else np.argmin
    if not kind.last:
        return np.expand_dims(find(x, axis=kind.axis), kind.axis).astype(np.int64)
    found = find(np.flip(x, kind.axis), axis=kind.axis)
    return np.expand_dims(x.shape[kind.axis] - 1 - found, kind.axis).astype(np.int64)
