"""An expression evaluated in numpy: what internal operators and tests use as their meaning."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .functions import FUNCTIONS
from .ir import Apply, Cast, Expr, Index, Literal, Operand


def evaluate(expr: Expr, operands: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """The result over `shape`, to which every operand must broadcast."""
    with np.errstate(all="ignore"):
        return np.broadcast_to(_evaluate(expr, operands, shape), shape).astype(expr.dtype.numpy)


def _evaluate(expr: Expr, operands: Sequence[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    match expr:
        case Operand():
            return operands[expr.index]
        case Index():
            return np.arange(shape[expr.axis]).reshape([-1 if a == expr.axis else 1 for a in range(len(shape))])
        case Literal():
            return np.asarray(expr.value, expr.dtype.numpy)
        case Cast():
            return _evaluate(expr.argument, operands, shape).astype(expr.dtype.numpy)
        case Apply():
            args = [_evaluate(arg, operands, shape) for arg in expr.arguments]
            if expr.arguments[-1].dtype.is_narrow_float:
                args = [a.astype(np.float32) if a.dtype != np.bool_ else a for a in args]
            return np.asarray(FUNCTIONS[expr.function].numpy(*args)).astype(expr.dtype.numpy)
    raise TypeError(f"not an expression: {expr!r}")
