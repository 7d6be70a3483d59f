"""gemm in numpy: einsum in the widest type, rounded once."""

from __future__ import annotations

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.gemm import Gemm


def oracle(kind: Gemm, a: np.ndarray, b: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    total: type[np.generic] = np.float64 if kind.accumulator.is_float else np.int64
    zeros = list(rest[: kind.fixed - 2])
    extras = rest[kind.fixed - 2 :]
    a_wide: np.ndarray = a.astype(total)
    b_wide: np.ndarray = b.astype(total)
    if kind.a_zero:
        a_wide = a_wide - zeros.pop(0).astype(total)[..., :, None]
    if kind.b_zero:
        b_wide = b_wide - zeros.pop(0).astype(total)[..., None, :]
    element = np.einsum("...mk,...kn->...mn", a_wide, b_wide).astype(kind.accumulator.numpy)
    return element if kind.epilogue is None else evaluate(kind.epilogue, [element, *extras], element.shape)
