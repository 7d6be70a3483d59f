"""Random numbers as numpy's RandomState draws them."""

from __future__ import annotations

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.random import Random


def oracle(kind: Random, *extras: np.ndarray, shape: tuple[int, ...] = ()) -> np.ndarray:
    state = np.random.RandomState(kind.seed)
    drawn = np.asarray(state.randn(*shape) if kind.normal else state.rand(*shape))
    return drawn if kind.epilogue is None else evaluate(kind.epilogue, [drawn, *extras], shape)
