"""scan_axis in numpy."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.scan_axis import ScanAxis


def oracle(kind: ScanAxis, x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.float64) if kind.accumulator.is_float else x
    run = np.cumsum if kind.combine == "add" else np.cumprod
    total = run(wide, axis=kind.axis, dtype=wide.dtype)
    if kind.exclusive:
        total = np.roll(total, 1, axis=kind.axis)
        total[(slice(None),) * kind.axis + (0,)] = 0 if kind.combine == "add" else 1
    return total.astype(x.dtype)
