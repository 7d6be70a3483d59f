"""What everyday networks are made of, at any number of rows, batch or length: in floats, and quantized as exporters
write it (DequantizeLinear of weights and biases, QuantizeLinear and DequantizeLinear behind each operator)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from onnx import ModelProto, NodeProto, helper, numpy_helper

from tests.fuzz.builder import Input
from tests.fuzz.subject import Subject

SIZES = (1, 2, 7, 31, 32, 33, 64, 1000)
SCALE = 0.043  # of activations: no power of two, so that ties are rare


@dataclass
class Net:
    """A network that grows node by node."""

    quantized: bool
    nodes: list[NodeProto] = field(default_factory=list)
    constants: dict[str, np.ndarray] = field(default_factory=dict)
    chance: np.random.Generator = field(default_factory=lambda: np.random.default_rng(11))

    def op(self, op: str, *ins: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, ins, [name], name=f"{name}/{op}", **attributes))
        return name

    def constant(self, array: np.ndarray) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = array
        return name

    def numbers(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def floats(self, *shape: int) -> str:
        return self.constant((self.chance.standard_normal(shape) / 2).astype(np.float32))

    def weights(self, *shape: int) -> str:
        if not self.quantized:
            return self.floats(*shape)
        scale = self.constant(np.float32(0.011))
        return self.op("DequantizeLinear", self.constant(self.chance.integers(-127, 128, shape).astype(np.int8)), scale)

    def bias(self, *shape: int) -> str:
        if not self.quantized:
            return self.floats(*shape)
        scale = self.constant(np.float32(SCALE * 0.011))
        sums = self.chance.integers(-900, 900, shape).astype(np.int32)
        return self.op("DequantizeLinear", self.constant(sums), scale)

    def q(self, x: str) -> str:
        """Quantized and dequantized, where the network is."""
        if not self.quantized:
            return x
        scale, zero = self.constant(np.float32(SCALE)), self.constant(np.int8(-5))
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, scale, zero), scale, zero)

    def layer(self, x: str, ins: int, outs: int, activation: str = "Relu") -> str:
        """A product with a bias, as Keras and PyTorch export it over more than two axes."""
        sums = self.op("Add", self.op("MatMul", x, self.weights(ins, outs)), self.bias(outs))
        return self.q(self.op(activation, sums) if activation else sums)


def mlp(net: Net, x: str, size: int) -> str:
    x = net.q(x)
    for ins, outs in pairwise((16, 64, 64, 8)):
        x = net.q(net.op("Relu", net.op("Gemm", x, net.weights(ins, outs), net.bias(outs))))
    return x


def deep_mlp(net: Net, x: str, size: int) -> str:
    x = net.q(x)
    for ins, outs in pairwise((16, 20, 48, 48, 20, 64, 8)):
        x = net.layer(x, ins, outs)
    return x


def feed_forward(net: Net, x: str, size: int) -> str:
    x = net.q(x)
    normal = net.q(net.op("LayerNormalization", x, net.floats(16), net.floats(16), axis=-1))
    wide = net.layer(normal, 16, 64, "")
    gelu = net.q(net.op("Mul", wide, net.op("Sigmoid", wide)))
    return net.q(net.op("Add", x, net.layer(gelu, 64, 16, "")))


def shared_mlp(net: Net, x: str, size: int) -> str:
    """PointNet: layers over points, the largest of all points, layers over that."""
    x = net.q(x)
    for ins, outs in pairwise((3, 32, 64)):
        x = net.layer(x, ins, outs)
    return net.layer(net.op("ReduceMax", x, net.numbers(1), keepdims=0), 64, 10, "")


def attention(net: Net, x: str, size: int) -> str:
    x, shape = net.q(x), net.numbers(0, 0, 2, 8)
    q, k, v = (net.op("Reshape", net.layer(x, 16, 16, ""), shape) for _ in range(3))
    across = net.op("Transpose", k, perm=[0, 2, 3, 1])
    scores = net.op("MatMul", net.op("Transpose", q, perm=[0, 2, 1, 3]), across)
    scaled = net.q(net.op("Mul", scores, net.constant(np.float32(8**-0.5))))
    shares = net.q(net.op("Softmax", scaled, axis=-1))
    mixed = net.q(net.op("MatMul", shares, net.op("Transpose", v, perm=[0, 2, 1, 3])))
    joined = net.op("Reshape", net.op("Transpose", mixed, perm=[0, 2, 1, 3]), net.numbers(0, 0, 16))
    return net.q(net.op("Add", x, net.layer(joined, 16, 16, "")))


def convolutions(net: Net, x: str, size: int) -> str:
    def conv(x: str, ins: int, outs: int, kernel: int, stride: int = 1, group: int = 1) -> str:
        weights, bias = net.weights(outs, ins // group, *[kernel] * 2), net.bias(outs)
        pads = [kernel // 2] * 4
        sums = net.op("Conv", x, weights, bias, pads=pads, strides=[stride] * 2, group=group)
        return net.q(net.op("Relu", sums))

    x = conv(net.q(x), 3, 8, 3, 2)
    x = conv(conv(x, 8, 8, 3, 1, 8), 8, 16, 1)
    x = net.q(net.op("Add", x, conv(x, 16, 16, 3)))
    mean = net.op("Flatten", net.q(net.op("GlobalAveragePool", x)))
    return net.q(net.op("Gemm", mean, net.weights(16, 10), net.bias(10)))


def signals(net: Net, x: str, size: int) -> str:
    x = net.q(x)
    for ins, outs, dilation in ((4, 8, 1), (8, 8, 2), (8, 6, 4)):
        sums = net.op("Conv", x, net.weights(outs, ins, 3), net.bias(outs), pads=[dilation] * 2, dilations=[dilation])
        x = net.q(net.op("Relu", sums))
    return x


def recurrent(op: str, gates: int) -> Callable[[Net, str, int], str]:
    def made(net: Net, x: str, size: int) -> str:
        w, r, b = net.floats(1, gates * 8, 4), net.floats(1, gates * 8, 8), net.floats(1, 2 * gates * 8)
        states = net.op(op, x, w, r, b, hidden_size=8)
        return net.layer(net.op("Squeeze", states, net.numbers(1)), 8, 3, "")

    return made


@dataclass(frozen=True)
class Block:
    """A block over an input whose shape follows from a size."""

    grow: Callable[[Net, str, int], str]
    shape: Callable[[int], tuple[int, ...]]
    kinds: tuple[bool, ...] = (False, True)  # in floats, quantized


BLOCKS = {
    "mlp, rows": Block(mlp, lambda n: (n, 16)),
    "deep mlp, rows": Block(deep_mlp, lambda n: (n, 16)),
    "feed-forward, batch": Block(feed_forward, lambda n: (n, 3, 16)),
    "feed-forward, length": Block(feed_forward, lambda n: (1, n, 16)),
    "shared mlp, points": Block(shared_mlp, lambda n: (1, n, 3)),
    "shared mlp, batch": Block(shared_mlp, lambda n: (n, 5, 3)),
    "attention, length": Block(attention, lambda n: (1, n, 16)),
    "attention, batch": Block(attention, lambda n: (n, 5, 16)),
    "convolutions, height": Block(convolutions, lambda n: (1, 3, n, 9)),
    "convolutions, batch": Block(convolutions, lambda n: (n, 3, 6, 5)),
    "signals, length": Block(signals, lambda n: (1, 4, n)),
    "signals, batch": Block(signals, lambda n: (n, 4, 9)),
    "lstm, length": Block(recurrent("LSTM", 4), lambda n: (n, 1, 4), (False,)),
    "lstm, batch": Block(recurrent("LSTM", 4), lambda n: (3, n, 4), (False,)),
    "gru, length": Block(recurrent("GRU", 3), lambda n: (n, 2, 4), (False,)),
}


def subject(name: str, quantized: bool, size: int) -> Subject:
    block, net = BLOCKS[name], Net(quantized)
    given = Input("x", np.dtype(np.float32), block.shape(size), "normal")
    last = block.grow(net, "x", size)
    rank = len(block.shape(size)) if last else 0
    return Subject(_model(net, given, last, rank), (given,), source="qdq" if quantized else "graph")


def _model(net: Net, given: Input, last: str, rank: int) -> ModelProto:
    net.nodes.append(helper.make_node("Identity", [last], ["y"], name="y"))
    made = helper.make_tensor_value_info("y", 1, None)
    constants = [numpy_helper.from_array(np.asarray(array), name) for name, array in net.constants.items()]
    graph = helper.make_graph(net.nodes, "block", [given.info()], [made], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
