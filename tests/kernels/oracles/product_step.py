"""product_step in numpy: both products in the widest type, rounded once, then their expressions."""

from __future__ import annotations

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.product_step import ProductStep


def oracle(
    kind: ProductStep, dy: np.ndarray, x: np.ndarray, w: np.ndarray, *rest: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    back, old, now = (array.astype(np.float64) for array in (dy, x, w))
    products = ((back @ now).astype(kind.accumulator.numpy), (back.T @ old).astype(kind.accumulator.numpy))
    handed = evaluate(kind.hand, [products[0], *rest[: kind.handed]], products[0].shape)
    return handed, evaluate(kind.move, [products[1], *rest[kind.handed :]], products[1].shape)
