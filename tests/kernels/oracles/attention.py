"""attention in numpy: both products and the softmax in double precision, the score in floats."""

from __future__ import annotations

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.attention import Attention


def oracle(kind: Attention, q: np.ndarray, k: np.ndarray, v: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    own, extras = rest[: kind.operands], rest[kind.operands + kind.scaled :]
    product = (q.astype(np.float64) @ k.astype(np.float64)).astype(kind.accumulator.numpy)
    scores = product if kind.score is None else evaluate(kind.score, [product, *own], product.shape)
    wide: np.ndarray = scores.astype(np.float64)
    shares = np.exp(wide - wide.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    if kind.or_zero:
        shares[np.isnan(shares)] = 0
    if kind.scaled:
        shares *= rest[kind.operands]
    element = (shares @ v.astype(np.float64)).astype(kind.accumulator.numpy)
    return element if kind.epilogue is None else evaluate(kind.epilogue, [element, *extras], element.shape)
