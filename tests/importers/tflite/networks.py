"""A network as a .tflite file: `python -m tests.importers.tflite.networks model.tflite` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from .build import Net

_CONV = {"StrideH": 1, "StrideW": 1, "DilationHFactor": 1, "DilationWFactor": 1}
RELU, RELU6 = 1, 3


def residual_network() -> bytes:
    """Convolutions in two branches, a pool, and a classifier; the batch is open."""
    chance = np.random.default_rng(0)
    net = Net()

    def weights(*shape: int, axis: int = 0) -> tuple[int, int]:
        scales = chance.uniform(0.002, 0.006, shape[axis])
        array = chance.integers(-127, 128, shape).astype(np.int8)
        bias = chance.integers(-900, 900, shape[axis]).astype(np.int32)
        return net.constant(array, scales, axis=axis), net.constant(bias, scales * 0.05)

    def image(channels: int, zero: int = -128) -> int:
        return net.tensor((1, 8, 8, channels), "INT8", 0.05, zero)

    x = net.input((1, 8, 8, 3), "INT8", 0.05, 3, name="image", open=[0])
    first, middle, deep, side, sum = image(8), image(8), image(8), image(8, 5), image(8)
    net.op("CONV_2D", [x, *weights(8, 3, 3, 3)], [first], "Conv2DOptions", FusedActivationFunction=RELU, **_CONV)
    depthwise = {"DepthMultiplier": 1, "FusedActivationFunction": RELU6, **_CONV}
    for source, made in ((first, middle), (middle, deep)):
        operands = [source, *weights(1, 3, 3, 8, axis=3)]
        net.op("DEPTHWISE_CONV_2D", operands, [made], "DepthwiseConv2DOptions", **depthwise)
    net.op("CONV_2D", [first, *weights(8, 1, 1, 8)], [side], "Conv2DOptions", **_CONV)
    net.op("ADD", [side, deep], [sum], "AddOptions", FusedActivationFunction=RELU)
    pooled, flat = net.tensor((1, 1, 1, 8), "INT8", 0.05, -128), net.tensor((1, 8), "INT8", 0.05, -128)
    window = {"Padding": 1, "StrideH": 8, "StrideW": 8, "FilterHeight": 8, "FilterWidth": 8}
    net.op("AVERAGE_POOL_2D", [sum], [pooled], "Pool2DOptions", **window)
    net.op("RESHAPE", [pooled, net.constant(np.array([-1, 8], np.int32))], [flat])
    scores, shares = net.tensor((1, 4), "INT8", 0.1, 9), net.tensor((1, 4), "INT8", 1 / 256, -128, name="scores")
    net.op("FULLY_CONNECTED", [flat, *weights(4, 8)], [scores], "FullyConnectedOptions")
    net.op("SOFTMAX", [scores], [shares], "SoftmaxOptions", Beta=1.0)
    return net.file([shares])


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(residual_network())
