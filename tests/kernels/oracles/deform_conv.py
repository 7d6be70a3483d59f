"""Deformable convolution in numpy: tap by tap, in double."""

from __future__ import annotations

from itertools import product

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.deform_conv import DeformConv


def oracle(kind: DeformConv, *arrays: np.ndarray) -> np.ndarray:
    x, w, offset = (array.astype(np.float64) for array in arrays[:3])
    batch, channels = x.shape[:2]
    groups, space = offset.shape[1], offset.shape[4:]
    result = np.zeros((batch, len(w), *space))
    for n, o, place in product(range(batch), range(len(w)), np.ndindex(*space)):
        group = o // (len(w) // kind.group)
        for c, (k, tap) in product(range(w.shape[1]), enumerate(np.ndindex(*kind.kernel))):
            channel = group * w.shape[1] + c
            g = channel // (channels // groups)
            at = [
                p * stride - pad + t * dilation + offset[(n, g, k, axis, *place)]
                for axis, (p, stride, pad, t, dilation) in enumerate(
                    zip(place, kind.strides, kind.pads, tap, kind.dilations, strict=True)
                )
            ]
            value = _between(x[n, channel], at)
            if kind.masked:
                value *= float(arrays[3][(n, g, k, *place)])
            result[(n, o, *place)] += w[o, c, k] * value
    total = result.astype(kind.accumulator.numpy)
    if kind.epilogue is None:
        return total
    return np.asarray(evaluate(kind.epilogue, [total, *arrays[kind.fixed :]], total.shape))


def _between(image: np.ndarray, at: list[float]) -> float:
    total = 0.0
    for sides in product((0, 1), repeat=image.ndim):
        corner = [int(np.floor(p)) + side for p, side in zip(at, sides, strict=True)]
        share = np.prod([p - np.floor(p) if side else 1 - (p - np.floor(p)) for p, side in zip(at, sides, strict=True)])
        if all(0 <= place < size for place, size in zip(corner, image.shape, strict=True)):
            total += float(share * image[tuple(corner)])
    return total
