"""band_gemm in numpy: the whole matrix, in the widest type, rounded once; of integers in theirs."""

from __future__ import annotations

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.band_gemm import BandGemm


def oracle(kind: BandGemm, a: np.ndarray, first: np.ndarray, b: np.ndarray, *extras: np.ndarray) -> np.ndarray:
    wide = np.float64 if kind.accumulator.is_float else kind.accumulator.numpy
    whole = np.zeros((a.shape[-1], len(b)), wide)
    for column, (start, run) in enumerate(zip(first, b, strict=True)):
        whole[start : start + len(run), column] = run.astype(wide)
    element = (a.astype(wide) @ whole).astype(kind.accumulator.numpy)
    return element if kind.epilogue is None else evaluate(kind.epilogue, [element, *extras], element.shape)
