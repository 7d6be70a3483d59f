"""transfer in numpy: what there is."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.transfer import Transfer


def oracle(kind: Transfer, x: np.ndarray) -> np.ndarray:
    return x
