"""unique in numpy, for rows that all differ."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.unique import Unique


def oracle(kind: Unique, x: np.ndarray) -> tuple[np.ndarray, ...]:
    rows = len(x)
    order = np.lexsort(x.T[::-1]) if kind.ascending else np.arange(rows)
    return order.astype(np.int64), np.ones(rows, np.int64), np.argsort(order).astype(np.int64), np.array([rows])
