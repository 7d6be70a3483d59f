"""Networks over signals (audio, energy, motion, EEG), each also as one over pictures of one row: what users write as
Conv1d must cost no more than the same as Conv2d.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

SCALE, ZERO = np.float32(0.05), np.int8(-3)  # of all quantized activations
PER_AXIS = ("strides", "dilations", "kernel_shape")


class Signal:
    """Operators one after the other over x[1, channels, length], or over x[1, channels, 1, length]."""

    def __init__(self, channels: int, length: int, picture: bool, quantized: bool) -> None:
        self.chance = np.random.default_rng(7)
        self.picture, self.quantized = picture, quantized
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, np.ndarray] = {"scale": SCALE.reshape(()), "zero": ZERO.reshape(())}
        self.channels, self.last, self.input = channels, "x", self.shape(1, channels, length)

    def shape(self, *sizes: int) -> list[int]:
        """With a unit axis in front of the last, where that is the form."""
        return [*sizes[:-1], 1, sizes[-1]] if self.picture else list(sizes)

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def node(self, op: str, *ins: str, **attributes: Any) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        if self.picture:
            one = {key: [1, *attributes[key]] for key in PER_AXIS if key in attributes}
            pads = attributes.get("pads", [0, 0])
            attributes |= one | ({"pads": [0, pads[0], 0, pads[1]]} if "pads" in attributes else {})
        self.nodes.append(helper.make_node(op, list(ins), [name], name=name, **attributes))
        self.last = name
        return name

    def stored(self) -> str:
        """What was computed last, as integers and back where activations are quantized."""
        if self.quantized:
            self.node("QuantizeLinear", self.last, "scale", "zero")
            self.node("DequantizeLinear", self.last, "scale", "zero")
        return self.last

    def weights(self, shape: Sequence[int], products: int) -> str:
        """At random, such that what they are multiplied with keeps its size."""
        if not self.quantized:
            return self.constant((self.chance.standard_normal(shape) / np.sqrt(products)).astype(np.float32))
        numbers = self.constant(self.chance.integers(-127, 128, shape).astype(np.int8))
        step = self.constant(np.array(0.015 / np.sqrt(products), np.float32))
        name = f"w{len(self.nodes)}"
        self.nodes.append(helper.make_node("DequantizeLinear", [numbers, step], [name], name=name))
        return name

    def conv(
        self, out: int, kernel: int, stride: int = 1, dilation: int = 1, group: int = 1, pad: str = "same",
        relu: bool = True,
    ) -> str:  # fmt: skip
        x, reach = self.last, (kernel - 1) * dilation
        pads = {"same": [reach // 2, reach - reach // 2], "causal": [reach, 0], "valid": [0, 0]}[pad]
        each, self.channels = self.channels // group, out
        w = self.weights(self.shape(out, each, kernel), each * kernel)
        b = self.constant((self.chance.standard_normal(out) / 10).astype(np.float32))
        self.node("Conv", x, w, b, strides=[stride], dilations=[dilation], pads=pads, group=group)
        return self.activated(relu)

    def transposed(self, out: int, kernel: int, stride: int) -> str:
        x, channels, self.channels = self.last, self.channels, out
        w = self.weights(self.shape(channels, out, kernel), channels * kernel // stride)
        cut = kernel - stride
        self.node("ConvTranspose", x, w, strides=[stride], pads=[cut // 2, cut - cut // 2])
        return self.activated()

    def activated(self, relu: bool = True) -> str:
        if relu:
            self.node("Relu", self.last)
        return self.stored()

    def separable(self, out: int, kernel: int, stride: int = 1) -> str:
        self.conv(self.channels, kernel, stride, group=self.channels)
        return self.conv(out, 1)

    def pool(self, op: str, kernel: int, stride: int, pad: int = 0, **more: int) -> str:
        self.node(op, self.last, kernel_shape=[kernel], strides=[stride], pads=[pad, pad], **more)
        return self.stored()

    def residual(self, kernel: int, dilation: int, pad: str = "same") -> str:
        x = self.last
        self.conv(self.channels, kernel, dilation=dilation, pad=pad)
        self.conv(self.channels, 1, relu=False)
        self.node("Add", x, self.last)
        return self.activated()

    def normalized(self, op: str, *constants: np.ndarray, **attributes: float) -> str:
        self.node(op, self.last, *(self.constant(array.astype(np.float32)) for array in constants), **attributes)
        self.node("Relu", self.last)
        return self.last

    def resized(self, scale: float, mode: str) -> str:
        scales = self.constant(np.array(self.shape(1, 1, 1), np.float32))
        self.constants[scales][-1] = scale
        return self.node("Resize", self.last, "", scales, mode=mode)

    def padded(self, before: int, after: int, mode: str) -> str:
        around = [*self.shape(0, 0, before), *self.shape(0, 0, after)]
        if self.picture:
            around[2] = around[6] = 0
        return self.node("Pad", self.last, self.constant(np.array(around, np.int64)), mode=mode)

    def classified(self, classes: int = 6) -> str:
        self.node("GlobalAveragePool", self.last)
        self.stored()
        self.node("Flatten", self.last)
        channels, self.channels = self.channels, classes
        return self.node("Gemm", self.last, self.weights((channels, classes), channels))

    def model(self, name: str) -> ModelProto:
        dtype = TensorProto.FLOAT
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("x", dtype, self.input)],
            [helper.make_tensor_value_info(self.last, dtype, None)],
            [numpy_helper.from_array(array, key) for key, array in self.constants.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
        return onnx.shape_inference.infer_shapes(made, check_type=True, strict_mode=True, data_prop=True)


Body = Callable[[Signal], object]


@dataclass(frozen=True)
class Network:
    """One network in both forms."""

    name: str
    channels: int
    length: int
    body: Body
    quantized: bool = False
    hop: int = 0  # new elements of a push, where it runs as a stream

    def model(self, picture: bool) -> ModelProto:
        made = Signal(self.channels, self.length, picture, self.quantized)
        if self.quantized:
            made.stored()
        self.body(made)
        return made.model(self.name)


def _plain(kernel: int, **more: Any) -> Body:
    def body(net: Signal) -> None:
        net.conv(16, kernel, **more)
        net.conv(16, kernel, **more)
        net.classified()

    return body


def _all(*steps: Body) -> Body:
    def body(net: Signal) -> None:
        for step in steps:
            step(net)

    return body


def _separable(kernel: int, stride: int = 1) -> Body:
    return _all(
        lambda n: n.conv(16, 3), lambda n: n.separable(24, kernel, stride), lambda n: n.separable(24, kernel),
        lambda n: n.classified(),
    )  # fmt: skip


def _transposed(kernel: int, stride: int) -> Body:
    return _all(lambda n: n.conv(16, 5, 2), lambda n: n.transposed(8, kernel, stride), lambda n: n.conv(4, 3))


def _between(step: Body) -> Body:
    return _all(lambda n: n.conv(16, 5), step, lambda n: n.conv(16, 3), lambda n: n.classified())


def _temporal(net: Signal) -> None:
    net.conv(16, 1)
    for dilation in (1, 2, 4, 8):
        net.residual(3, dilation, "causal")
    net.classified()


def _unet(net: Signal) -> None:
    first = net.conv(8, 5)
    net.conv(16, 5, 2)
    net.conv(16, 5)
    net.transposed(8, 4, 2)
    net.node("Concat", first, net.last, axis=1)
    net.channels = 16
    net.conv(2, 3, relu=False)


def _raw_audio(net: Signal) -> None:
    net.conv(16, 33, 4)
    net.pool("MaxPool", 4, 4)
    net.conv(32, 3)
    net.pool("MaxPool", 2, 2)
    net.conv(32, 3)
    net.classified()


def _energy(net: Signal) -> None:
    """Sequence to sequence, as energy of one device is told from that of a house."""
    for channels, kernel in ((16, 9), (24, 7), (24, 5)):
        net.conv(channels, kernel)
    net.conv(1, 1, relu=False)


def _eeg(net: Signal) -> None:
    net.conv(8, 33)
    net.conv(16, 1)
    net.conv(16, 15, group=16)
    net.pool("AveragePool", 4, 4)
    net.separable(16, 7)
    net.pool("AveragePool", 8, 8)
    net.classified()


_EITHER: Mapping[str, tuple[int, int, Body]] = {
    **{f"kernel_{kernel}": (8, 96, _plain(kernel)) for kernel in (1, 2, 3, 5, 7, 15, 25, 33)},
    **{f"stride_{s}_of_{k}": (8, 128, _plain(k, stride=s)) for k, s in ((3, 2), (5, 2), (7, 4), (8, 3))},
    **{f"dilation_{d}_of_{k}": (8, 96, _plain(k, dilation=d)) for k, d in ((3, 2), (3, 4), (5, 3))},
    "causal": (8, 96, _plain(5, pad="causal", dilation=2)),
    "valid": (6, 96, _plain(5, pad="valid")),
    "groups": (8, 96, _plain(3, group=4)),
    "odd_channels": (3, 75, _all(lambda n: n.conv(7, 3), lambda n: n.conv(5, 5), lambda n: n.classified())),
    **{f"separable_{k}": (8, 96, _separable(k)) for k in (3, 9, 31)},
    "separable_stride_2": (8, 96, _separable(5, 2)),
    **{f"transposed_{k}_{s}": (8, 64, _transposed(k, s)) for k, s in ((4, 2), (3, 1), (8, 4))},
    "max_pool": (8, 96, _between(lambda n: n.pool("MaxPool", 3, 2, 1))),
    "mean_pool": (8, 96, _between(lambda n: n.pool("AveragePool", 4, 4))),
    "temporal": (8, 96, _temporal),
    "unet": (4, 96, _unet),
    "raw_audio": (1, 1024, _raw_audio),
    "energy": (1, 128, _energy),
    "eeg": (16, 256, _eeg),
}
_ONES = np.ones(16)
_FLOATS: Mapping[str, tuple[int, int, Body]] = {
    "mean_pool_padded": (8, 96, _between(lambda n: n.pool("AveragePool", 3, 1, 1, count_include_pad=1))),
    "batch_normalized": (
        8, 96, _between(lambda n: n.normalized("BatchNormalization", _ONES, 0 * _ONES, 0.1 * _ONES, 2 * _ONES)),
    ),
    "instance_normalized": (8, 96, _between(lambda n: n.normalized("InstanceNormalization", _ONES, 0 * _ONES))),
    "group_normalized": (
        8, 96, _between(lambda n: n.normalized("GroupNormalization", _ONES, 0 * _ONES, num_groups=4)),
    ),
    "nearest": (8, 48, _between(lambda n: n.resized(2, "nearest"))),
    "linear": (8, 48, _between(lambda n: n.resized(2, "linear"))),
    **{f"pad_{mode}": (8, 96, _between(lambda n, mode=mode: n.padded(4, 3, mode))) for mode in ("reflect", "constant")},
}  # fmt: skip
_STREAMS: Mapping[str, tuple[int, int, Body]] = {
    "stream_temporal": (8, 64, _all(*[lambda n: n.conv(16, 3, pad="valid")] * 3)),
    "stream_separable": (8, 64, _all(*[lambda n: n.conv(8, 5, group=8, pad="valid"), lambda n: n.conv(8, 1)] * 2)),
}


def networks() -> Iterator[Network]:
    for name, parts in _EITHER.items():
        yield Network(f"{name}_f32", *parts)
        yield Network(f"{name}_int8", *parts, quantized=True)
    for name, parts in _FLOATS.items():
        yield Network(f"{name}_f32", *parts)
    for name, parts in _STREAMS.items():
        yield Network(f"{name}_f32", *parts, hop=4)
        yield Network(f"{name}_int8", *parts, quantized=True, hop=4)


NETWORKS = {network.name: network for network in networks()}
