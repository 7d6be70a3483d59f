"""Nearest neighbours are those that LiteRT takes, also where its coordinates, floats, lie beside the exact ones."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert")

import mccompile
from tests.thorough import some

from .build import Net
from .litert import Litert
from .run_cases import _COMPILER

SIZES = ((2, 41), (4, 75), (2, 82), (8, 93), (6, 74), (14, 45), (5, 3), (3, 1), (7, 7))


@some(1, "dtype", ["FLOAT32", "INT8", "UINT8"])
def test_nearest_neighbours(dtype: str) -> None:
    net, outs, feeds = Net(), [], []
    q = {} if dtype == "FLOAT32" else {"scale": 0.5, "zero": 3}
    for before, after in SIZES:
        x = net.input((1, before, before, 2), dtype, **q)
        count = 2 * before * before
        feeds.append(np.arange(count).astype(np.dtype(dtype.lower())).reshape(1, before, before, 2))
        for corners in (False, True):
            for centres in (False, True):
                outs.append(net.tensor((1, after, after + 1, 2), dtype, **q))
                sizes = net.constant(np.array([after, after + 1], np.int32))
                how = {"AlignCorners": corners, "HalfPixelCenters": centres}
                net.op("RESIZE_NEAREST_NEIGHBOR", [x, sizes], [outs[-1]], "ResizeNearestNeighborOptions", **how)
    data = net.file(outs)
    network = mccompile.load(data, target="generic", cc=_COMPILER)
    for got, want in zip(network(*feeds), Litert(data)(feeds), strict=True):
        np.testing.assert_array_equal(got, want)
