"""Fourier transforms, segments, buckets, boxes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..draw import Draw, draws


@draws("RFFT2D", "COMPLEX_ABS", "REAL", "IMAG", rtol=1e-4)
def _spectrum(draw: Draw) -> Sequence[int]:
    """A complex number is not an output: its length is."""
    batch, lengths = draw.shape(0, 2, 3), (draw.pick(1, 1, 2, 4), draw.pick(2, 4, 8, 16))
    sizes = [max(1, length + draw.pick(0, 0, -1, 2)) for length in lengths]
    net = draw.net
    x = draw.input((*batch, *sizes))
    spectrum = net.tensor((*batch, lengths[0], lengths[1] // 2 + 1), "COMPLEX64")
    net.op("RFFT2D", [x, draw.ints(*lengths)], [spectrum], "Rfft2dOptions")
    y = draw.out(net.tensors[spectrum]["shape"])
    net.op("COMPLEX_ABS" if draw.name == "RFFT2D" else draw.name, [spectrum], [y])
    return [y]


@draws("SEGMENT_SUM")
def _segment_sum(draw: Draw) -> Sequence[int]:
    shape, type = draw.shape(1, 3, 6), draw.pick("FLOAT32", "INT32")
    ids = np.cumsum(draw.chance.integers(0, 2, shape[0])).astype(np.int32)
    ids -= ids[0]
    out = draw.out((int(ids[-1]) + 1, *shape[1:]), type)
    return draw.op([draw.input(shape, type), draw.ints(*ids)], [out])


@draws("UNSORTED_SEGMENT_MAX", "UNSORTED_SEGMENT_MIN", "UNSORTED_SEGMENT_PROD", "UNSORTED_SEGMENT_SUM")
def _unsorted(draw: Draw) -> Sequence[int]:
    shape, count, type = draw.shape(1, 3, 6), draw.int(1, 4), draw.pick("FLOAT32", "INT32")
    ids = draw.net.input(shape[:1], "INT32")
    draw.ranges[ids] = (0, count - 1)
    x = draw.input(shape, type, (-3, 3))
    return draw.op([x, ids, draw.scalar(count)], [draw.out((count, *shape[1:]), type)])


@draws("BUCKETIZE")
def _bucketize(draw: Draw) -> Sequence[int]:
    shape, bounds = draw.shape(), np.sort(draw.chance.uniform(-3, 3, draw.int(1, 5)).astype(np.float32))
    y = draw.net.tensor(shape, "INT32")
    return draw.op(
        [draw.input(shape, draw.pick("FLOAT32", "INT32"), (-4, 4))], [y], "BucketizeOptions", Boundaries=bounds
    )


@draws("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def _boxes(draw: Draw) -> Sequence[int]:
    net, count, most = draw.net, draw.int(1, 12), draw.int(1, 8)
    corners = draw.chance.uniform(0, 1, (count, 2)).astype(np.float32)
    boxes = net.constant(np.concatenate([corners, corners + 0.3], axis=1))
    limits = [net.constant(np.array(value, np.float32)) for value in (0.4, 0.2, 0.0)]
    scores = draw.input((count,), range=(0.0, 1.0))
    made = [net.tensor((most,), "INT32"), net.tensor((most,)), net.tensor((), "INT32")]
    operands = [boxes, scores, draw.scalar(most), *limits]
    if draw.name.endswith("4"):
        return draw.op(operands[:-1], [made[0], made[2]])
    return draw.op(operands, made)
