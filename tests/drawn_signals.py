"""Networks over signals at random: three to six layers as audio, motion and EEG have them, in both forms of
tests/signal_networks.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from tests.signal_networks import Body, Network, Signal

KERNELS = (1, 2, 3, 4, 5, 7, 8, 9, 11, 15, 16, 21, 25, 31, 33)
LAYERS = (
    *("conv",) * 3, "depthwise", "separable", "grouped", "strided", "dilated", "pool", "pool", "residual", "transposed",
)  # fmt: skip
FLOATS = ("normalized", "resized", "padded", "curve")
STREAMED = ("conv", "conv", "depthwise", "separable", "grouped", "dilated")
LEAST = 4  # elements that are left of a signal


def networks(seed: int, count: int) -> Iterator[Network]:
    """Every second one is quantized, every sixth runs as a stream."""
    for number in range(count):
        chance = Random(f"{seed} {number}")
        quantized, hop = number % 2 == 1, chance.choice((1, 2, 4, 5)) if number % 6 > 3 else 0
        length = chance.choice((48, 64, 75, 96, 125, 128, 160))
        body = _body(chance.randrange(1 << 30), length, quantized, streamed=hop > 0)
        name = f"drawn_{seed}_{number}_{'int8' if quantized else 'f32'}{'_stream' if hop else ''}"
        yield Network(name, chance.choice((1, 2, 3, 6, 8, 12, 16)), length, body, quantized, hop)


def _body(seed: int, length: int, quantized: bool, streamed: bool) -> Body:
    """What both forms, and each compilation, draw alike."""

    def body(net: Signal) -> None:
        chance = Random(seed)
        layers = STREAMED if streamed else LAYERS if quantized else (*LAYERS, *FLOATS)
        pad = "valid" if streamed else chance.choice(("same", "same", "causal", "valid"))
        left = length
        for _ in range(chance.randint(3, 6)):
            left = _layer(net, chance, chance.choice(layers), left, pad)
        if not streamed and chance.random() < 0.7:
            net.classified(chance.randint(2, 12))

    return body


def _layer(net: Signal, chance: Random, layer: str, left: int, pad: str) -> int:
    """The elements that are left behind it."""
    kernel = min(chance.choice(KERNELS), max(1, left - LEAST))
    channels = chance.choice((4, 6, 8, 10, 12, 16, 20, 24, 32))
    cut = kernel - 1 if pad == "valid" else 0
    if layer == "conv":
        net.conv(channels, kernel, pad=pad, relu=chance.random() < 0.8)
    elif layer in {"depthwise", "separable"}:
        net.conv(net.channels * chance.choice((1, 1, 1, 2)), kernel, group=net.channels, pad=pad)
        if layer == "separable":
            net.conv(channels, 1)
    elif layer == "grouped":
        groups = chance.choice([n for n in (2, 3, 4, 8) if net.channels % n == 0] or [1])
        net.conv(groups * chance.choice((1, 2, 3, 4)), kernel, group=groups, pad=pad)
    elif layer == "strided":
        stride = chance.choice((2, 3, 4))
        net.conv(channels, kernel, stride, pad=pad)
        return (left - cut - 1) // stride + 1
    elif layer == "dilated":
        kernel, dilation = min(kernel, 5), chance.choice((2, 3, 4))
        if (kernel - 1) * dilation >= left - LEAST:
            return left
        net.conv(channels, kernel, dilation=dilation, pad=pad)
        cut = (kernel - 1) * dilation if pad == "valid" else 0
    elif layer == "pool":
        size = chance.choice([n for n in (2, 3, 4, 8) if n <= left // 2] or [1])
        stride = chance.choice((size, max(1, size - 1)))
        net.pool(chance.choice(("MaxPool", "AveragePool")), size, stride)
        return (left - size) // stride + 1
    elif layer == "residual":
        net.residual(chance.choice((3, 5, 9)), 1, "causal" if pad == "valid" else pad)
        return left
    elif layer == "transposed":
        stride = chance.choice((1, 2, 3, 4))
        net.transposed(channels, stride * chance.choice((1, 2)), stride)
        return left * stride
    else:
        return _float_layer(net, chance, layer, left)
    return left - cut


def _float_layer(net: Signal, chance: Random, layer: str, left: int) -> int:
    if layer == "normalized":
        ones = np.ones(net.channels)
        op = chance.choice(("BatchNormalization", "InstanceNormalization"))
        net.normalized(op, ones, 0 * ones, *([0.1 * ones, 2 * ones] if op == "BatchNormalization" else []))
    elif layer == "resized":
        net.resized(2, chance.choice(("nearest", "linear")))
        return left * 2
    elif layer == "padded":
        before, after = chance.randint(0, 3), chance.randint(0, 3)
        net.padded(before, after, chance.choice(("reflect", "constant", "edge")))
        return left + before + after
    else:
        net.node(chance.choice(("Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Gelu")), net.last)
    return left
