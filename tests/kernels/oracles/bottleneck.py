"""bottleneck in numpy: the three convolutions, one behind the other."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.bottleneck import Bottleneck
from tests.kernels.oracles import conv


def oracle(kind: Bottleneck, x: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    first, second, third = kind.parts([x, *rest])
    wide = conv.oracle(kind.widen, x, *first)
    return conv.oracle(kind.narrow, conv.oracle(kind.slide, wide, *second), *third)
