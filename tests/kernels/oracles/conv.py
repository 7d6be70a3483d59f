"""conv in numpy: every tap adds a shifted picture times its weights, on explicitly padded operands."""

from __future__ import annotations

import itertools

import numpy as np

from mccompile.base.dims import static
from mccompile.kinds.conv import Conv
from tests.kernels.wide import Wide


def oracle(kind: Conv, x: np.ndarray, w: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    wide = Wide(kind, rest)
    x_wide = wide.factor(x, kind.x_zero)
    w_wide = wide.factor(w, kind.w_zero, *[None] * (w.ndim - 1))
    rank = len(kind.strides)
    padded = np.pad(x_wide, [(0, 0), (0, 0), *((kind.pads[i], kind.pads[i + rank]) for i in range(rank))])
    out_shape = [static(size) for size in kind.out_shape(x.shape, w.shape)]
    outputs = w.shape[0] // kind.group
    inputs = w.shape[1]
    y = np.zeros(out_shape, wide.type)
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
    return wide.result(y)
