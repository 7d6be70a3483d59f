"""conv in numpy: every tap adds a shifted picture times its weights, on explicitly padded operands."""

from __future__ import annotations

import itertools

import numpy as np

from mccompile.base.dims import static
from mccompile.expr.evaluate import evaluate
from mccompile.kinds.conv import Conv


def oracle(kind: Conv, x: np.ndarray, w: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    total: type[np.generic] = np.float64 if kind.accumulator.is_float else np.int64
    zeros = list(rest[: kind.fixed - 2])
    extras = rest[kind.fixed - 2 :]
    x_wide: np.ndarray = x.astype(total)
    w_wide: np.ndarray = w.astype(total)
    if kind.x_zero:
        x_wide = x_wide - zeros.pop(0).astype(total)
    if kind.w_zero:
        w_wide = w_wide - zeros.pop(0).astype(total).reshape(-1, *[1] * (w.ndim - 1))
    rank = len(kind.strides)
    padded = np.pad(x_wide, [(0, 0), (0, 0), *((kind.pads[i], kind.pads[i + rank]) for i in range(rank))])
    out_shape = [static(size) for size in kind.out_shape(x.shape, w.shape)]
    outputs = w.shape[0] // kind.group
    inputs = w.shape[1]
    y = np.zeros(out_shape, total)
    for tap in itertools.product(*(range(size) for size in w.shape[2:])):
        place = tuple(
            slice(t * d, t * d + (n - 1) * s + 1, s)
            for t, d, s, n in zip(tap, kind.dilations, kind.strides, out_shape[2:], strict=True)
        )
        picture = padded[(slice(None), slice(None), *place)]
        for group in range(kind.group):
            part = picture[:, group * inputs : (group + 1) * inputs]
            weights = w_wide[group * outputs : (group + 1) * outputs][np.index_exp[...] + tap]
            y[:, group * outputs : (group + 1) * outputs] += np.einsum("nc...,oc->no...", part, weights)
    element = y.astype(kind.accumulator.numpy)
    return element if kind.epilogue is None else evaluate(kind.epilogue, [element, *extras], element.shape)
