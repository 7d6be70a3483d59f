"""reduce in numpy: every element spelled out, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.reduce import Reduce

_UFUNCS = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.logical_and,
    "or": np.logical_or,
}


def oracle(kind: Reduce, *arrays: np.ndarray) -> np.ndarray:
    full = arrays[: kind.operands]
    shape = full[0].shape
    terms = evaluate(kind.element, full, shape)
    exact = terms.astype(np.float64) if kind.accumulator.is_float else terms
    start = kind.identity() if kind.combine in ("max", "min") and 0 in shape else None
    with np.errstate(over="ignore"):
        options: dict[str, Any] = {} if start is None else {"initial": start}
        total = _UFUNCS[kind.combine].reduce(exact, axis=kind.axes, keepdims=True, dtype=exact.dtype, **options)
    value = np.asarray(total).astype(kind.accumulator.numpy)
    if kind.epilogue is None:
        return value
    return evaluate(kind.epilogue, [value, *arrays[kind.operands :]], value.shape)
