"""edit_slots in numpy."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.edit_slots import EditSlots


def oracle(kind: EditSlots, x: np.ndarray, at: np.ndarray, *piece: np.ndarray) -> np.ndarray:
    rows = list(x)
    if not piece:
        del rows[min(max(int(at), 0), len(x) - 1)]
        return np.array([*rows, np.zeros_like(x[0])])
    row = np.zeros_like(x[0])
    row[: piece[0].size] = piece[0].reshape(-1)
    rows.insert(min(max(int(at), 0), len(x)), row)
    return np.array(rows)
