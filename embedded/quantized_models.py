"""Models of 8-bit integers as microcontrollers run them, with weights and scales at random, in the form that quantisers
write: DequantizeLinear, operator, QuantizeLinear. Scales make use of all 8 bits, so that sums are not always saturated.
"""

from __future__ import annotations

import itertools

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

STEP = 0.05  # scale of all activations


class Net:
    """Operators one after the other, each over the integers that the one before has made."""

    def __init__(self, shape: tuple[int, ...], seed: int) -> None:
        self.chance = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {"step": np.array(STEP, np.float32), "zero": np.array(-3, np.int8)}
        self.shape, self.last = shape, "x"

    def constant(self, name: str, array: np.ndarray) -> str:
        self.weights[name] = array
        return name

    def node(self, op: str, ins: list[str], **attributes: object) -> str:
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, ins, [name], name=name, **attributes))
        return name

    def layer(self, op: str, shape: tuple[int, ...], products: int, relu: bool = True, **attributes: object) -> None:
        """An operator with weights and a bias per channel."""
        name, channels = f"l{len(self.nodes)}", shape[0]
        scales = (self.chance.uniform(0.5, 1, channels) * 0.03 / np.sqrt(products)).astype(np.float32)
        zeros = np.zeros(channels, np.int8)
        w = self.constant(f"{name}_w", self.chance.integers(-127, 128, shape).astype(np.int8))
        b = self.constant(f"{name}_b", self.chance.integers(-900, 900, channels).astype(np.int32))
        s, z = self.constant(f"{name}_s", scales), self.constant(f"{name}_z", zeros)
        sb = self.constant(f"{name}_sb", scales * np.float32(STEP))
        x = self.node("DequantizeLinear", [self.last, "step", "zero"])
        weights = self.node("DequantizeLinear", [w, s, z], axis=0)
        bias = self.node("DequantizeLinear", [b, sb], axis=0)
        result = self.node(op, [x, weights, bias], **attributes)
        if relu:
            result = self.node("Relu", [result])
        self.last = self.node("QuantizeLinear", [result, "step", "zero"])

    def classify(self, channels: int) -> None:
        """Ten numbers of the mean of every channel."""
        x = self.node("DequantizeLinear", [self.last, "step", "zero"])
        mean = self.node("GlobalAveragePool", [x])
        self.last = self.node("QuantizeLinear", [mean, "step", "zero"])
        self.last = self.node("Reshape", [self.last, self.constant("flat", np.array([1, channels], np.int64))])
        self.layer("Gemm", (10, channels), channels, False, transB=1)

    def model(self, name: str, out: tuple[int, ...]) -> ModelProto:
        graph = helper.make_graph(
            self.nodes,
            name,
            [helper.make_tensor_value_info("x", TensorProto.INT8, self.shape)],
            [helper.make_tensor_value_info(self.last, TensorProto.INT8, out)],
            [numpy_helper.from_array(array, key) for key, array in self.weights.items()],
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def autoencoder_int8() -> ModelProto:
    """The shape of MLPerf Tiny's anomaly detection: 640 numbers through 8 and back."""
    sizes = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640)
    net = Net((1, 640), 1)
    for before, after in itertools.pairwise(sizes):
        net.layer("Gemm", (after, before), before, after != sizes[-1], transB=1)
    return net.model("autoencoder_int8", (1, 640))


def separable_int8() -> ModelProto:
    """Convolutions of each channel for itself, then over channels; odd sizes, strides, a mean, a dense layer."""
    net = Net((1, 1, 19, 21), 2)
    net.layer("Conv", (16, 1, 5, 3), 15, kernel_shape=[5, 3], strides=[1, 2], pads=[2, 1, 2, 1])
    height, width, channels = 19, 11, 16
    for stride, outs in ((1, 24), (2, 32), (1, 32)):
        taps = {"kernel_shape": [3, 3], "strides": [stride, stride], "pads": [1, 1, 1, 1]}
        net.layer("Conv", (channels, 1, 3, 3), 9, group=channels, **taps)
        net.layer("Conv", (outs, channels, 1, 1), channels, kernel_shape=[1, 1])
        height, width, channels = -(-height // stride), -(-width // stride), outs
    net.classify(channels)
    return net.model("separable_int8", (1, 10))


def residual_int8() -> ModelProto:
    """3x3 convolutions over all channels: odd sizes, one with stride 2, and one whose input is added to its result."""
    net = Net((1, 3, 15, 13), 3)
    taps = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    net.layer("Conv", (16, 3, 3, 3), 27, **taps)
    skipped = net.last
    net.layer("Conv", (16, 16, 3, 3), 144, **taps)
    net.layer("Conv", (16, 16, 3, 3), 144, False, **taps)
    sides = [net.node("DequantizeLinear", [name, "step", "zero"]) for name in (skipped, net.last)]
    total = net.node("Relu", [net.node("Add", sides)])
    net.last = net.node("QuantizeLinear", [total, "step", "zero"])
    net.layer("Conv", (32, 16, 3, 3), 144, strides=[2, 2], **taps)
    net.layer("Conv", (32, 32, 3, 3), 288, **taps)
    net.classify(32)
    return net.model("residual_int8", (1, 10))


def resnet_int8(channels: int = 26) -> ModelProto:
    """MLPerf Tiny's ResNet-8, over pictures whose channels lie last: 16 channels, or 26 in the larger one."""
    net = Net((1, 32, 32, 3), 4)
    net.last = net.node("Transpose", [net.last], perm=[0, 3, 1, 2])
    taps = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    net.layer("Conv", (channels, 3, 3, 3), 27, **taps)
    before = channels
    for outs, stride in ((channels, 1), (2 * channels, 2), (4 * channels, 2)):
        skipped = net.last
        net.layer("Conv", (outs, before, 3, 3), 9 * before, strides=[stride, stride], **taps)
        net.layer("Conv", (outs, outs, 3, 3), 9 * outs, False, **taps)
        straight = net.last
        if stride > 1:
            net.last = skipped
            net.layer("Conv", (outs, before, 1, 1), before, False, kernel_shape=[1, 1], strides=[stride, stride])
            skipped = net.last
        sides = [net.node("DequantizeLinear", [name, "step", "zero"]) for name in (skipped, straight)]
        total = net.node("Relu", [net.node("Add", sides)])
        net.last = net.node("QuantizeLinear", [total, "step", "zero"])
        before = outs
    net.classify(before)
    return net.model("resnet_int8", (1, 10))


def in_four_bits(model: ModelProto, times: float) -> ModelProto:
    """The model with its weights in 4 bits and scales that are so much larger; ReLU is what the smallest number is."""
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if tensor.name == "zero":
            tensor.CopyFrom(numpy_helper.from_array(np.array(-128, np.int8), tensor.name))
        if tensor.name.endswith("_w"):
            tensor.CopyFrom(numpy_helper.from_array(array >> 4, tensor.name))
        elif tensor.name.endswith(("_s", "_sb")):
            tensor.CopyFrom(numpy_helper.from_array(array * np.float32(times), tensor.name))
    return model
