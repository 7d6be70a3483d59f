"""conv_transpose in numpy: every input and tap adds to the position where it lands, as the definition says."""

from __future__ import annotations

import itertools

import numpy as np

from mccompile.base.dims import static
from mccompile.expr.evaluate import evaluate
from mccompile.kinds.conv_transpose import ConvTranspose


def oracle(kind: ConvTranspose, x: np.ndarray, w: np.ndarray, *extras: np.ndarray) -> np.ndarray:
    inputs, outputs = x.shape[1] // kind.group, w.shape[1]
    space = [static(size) for size in kind.space]
    y = np.zeros((x.shape[0], outputs * kind.group, *space), np.float64)
    x_wide, w_wide = x.astype(np.float64), w.astype(np.float64)
    if kind.x_zero:
        x_wide -= float(extras[0])
    for place in np.ndindex(*x.shape[2:]):
        for tap in itertools.product(*(range(size) for size in w.shape[2:])):
            steps = zip(place, kind.strides, tap, kind.dilations, kind.pads, strict=True)
            at = tuple(i * s + t * d - p for i, s, t, d, p in steps)
            if any(not 0 <= a < n for a, n in zip(at, space, strict=True)):
                continue
            for group in range(kind.group):
                part = slice(group * inputs, (group + 1) * inputs)
                weights = w_wide[part][np.index_exp[...] + tap]
                target = (slice(None), slice(group * outputs, (group + 1) * outputs), *at)
                y[target] += x_wide[(slice(None), part, *place)] @ weights
    element = y.astype(kind.accumulator.numpy)
    operands = [element, *extras[kind.x_zero :]]
    return element if kind.epilogue is None else evaluate(kind.epilogue, operands, element.shape)
