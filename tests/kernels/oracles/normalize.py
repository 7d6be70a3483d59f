"""normalize in numpy, in double precision, as the definitions have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.normalize import Normalize


def oracle(kind: Normalize, *operands: np.ndarray) -> np.ndarray:
    x, extras = operands[0], operands[kind.operands :]
    if kind.element is not None:
        x = evaluate(kind.element, operands[: kind.operands], x.shape)
    value = _measured(kind, x.astype(np.float64)).astype(kind.accumulator.numpy)
    return value if kind.epilogue is None else evaluate(kind.epilogue, [value, *extras], x.shape)


def _measured(kind: Normalize, x: np.ndarray) -> Any:
    over: dict[str, Any] = {"axis": kind.axes, "keepdims": True}
    if kind.measure in ("softmax", "log_softmax"):
        shifted = x - x.max(**over)
        share = np.exp(shifted)
        total = share.sum(**over)
        return share / total if kind.measure == "softmax" else shifted - np.log(total)
    if kind.measure == "standardize":
        return (x - x.mean(**over)) / np.sqrt(x.var(**over) + kind.epsilon)
    if kind.measure == "rms":
        return x / np.sqrt(np.square(x).mean(**over) + kind.epsilon)
    size = np.abs(x).sum(**over) if kind.measure == "l1" else np.sqrt(np.square(x).sum(**over))
    return np.divide(x, size, out=np.zeros_like(x), where=np.broadcast_to(size != 0, x.shape))
