"""block_gemm in numpy: weights unpacked in doubles, one product, rounded once."""

from __future__ import annotations

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.block_gemm import BlockGemm


def oracle(kind: BlockGemm, a: np.ndarray, b: np.ndarray, scale: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    wide: np.ndarray = b.astype(np.float64)
    group = np.arange(len(b)) // kind.block
    if kind.zeros:
        wide = wide - np.broadcast_to(rest[0], (group[-1] + 1, b.shape[1])).astype(np.float64)[group]
    wide = wide * np.broadcast_to(scale, (group[-1] + 1, b.shape[1])).astype(np.float64)[group]
    element: np.ndarray = (a.astype(np.float64) @ wide).astype(np.float32)
    return element if kind.epilogue is None else evaluate(kind.epilogue, [element, *rest[kind.zeros :]], element.shape)
