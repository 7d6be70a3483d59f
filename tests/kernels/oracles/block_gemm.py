"""block_gemm in numpy: weights unpacked in doubles, one product, rounded once. Where the kind rounds, a is rounded
before, as kernels do it; those that compute in floats have no such cases."""

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
    left = rounded(a, kind.block) if kind.rounds else a.astype(np.float64)
    element: np.ndarray = (left @ wide).astype(np.float32)
    return element if kind.epilogue is None else evaluate(kind.epilogue, [element, *rest[kind.zeros :]], element.shape)


def rounded(a: np.ndarray, block: int) -> np.ndarray:
    """Whole numbers up to 127 times the scale of their block."""
    found = np.zeros(a.shape)
    for begin in range(0, a.shape[1], block):
        part = a[:, begin : begin + block].astype(np.float32)
        largest = np.max(np.abs(part), axis=1, keepdims=True)
        counts = largest > np.float32(1e-30)
        inverse = np.divide(np.float32(127), largest, out=np.zeros_like(largest), where=counts)
        scale = np.where(np.isfinite(largest), largest / np.float32(127), np.nan)
        found[:, begin : begin + block] = np.rint(part * inverse).astype(np.float64) * scale
    return found
