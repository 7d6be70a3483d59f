"""Random quantized networks as ONNX files have them: integers, DequantizeLinear, operator, QuantizeLinear, integers.

Scales are sometimes powers of two, so that halves occur; zero points, signs and shapes vary.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

Numbers = np.random.Generator
ZERO = 7  # zero point of weights that have one


@dataclass
class Net:
    chance: Numbers
    widest: int = 5  # channels
    bits: int = 8  # of activations
    dead: float = 0.0  # share of weights' rows and columns that are zero
    nodes: list[NodeProto] = field(default_factory=list)
    weights: list[TensorProto] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)  # of integer tensors
    schemes: dict[str, tuple[str, str]] = field(default_factory=dict)  # names of scale and zero point

    def name(self, stem: str) -> str:
        return f"{stem}{len(self.nodes)}_{len(self.weights)}"

    def constant(self, array: np.ndarray, stem: str = "c") -> str:
        name = self.name(stem)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, *ins: str, **attributes: Any) -> str:
        name = self.name(op.lower())
        self.nodes.append(helper.make_node(op, list(ins), [name], name=name, **attributes))
        return name

    def scales(self, count: int = 0, around: float = 0.02) -> np.ndarray:
        if self.chance.random() < 0.3:
            found = 2.0 ** self.chance.integers(-8, -3, count or None)
        else:
            found = around * self.chance.uniform(0.5, 2, count or None)
        return np.asarray(found, np.float32)

    def dtype(self) -> type[np.int8] | type[np.uint8]:
        return np.int8 if self.chance.random() < 0.6 else np.uint8

    def scheme(self, around: float = 0.02) -> tuple[str, str]:
        dtype = np.dtype(self.dtype())
        if self.bits == 16:
            dtype, around = np.dtype(f"{dtype.kind}2"), around / 256
        info = np.iinfo(dtype)
        zero = self.chance.choice([info.min, info.max, int(self.chance.integers(info.min, info.max + 1))])
        return self.constant(self.scales(0, around), "scale"), self.constant(np.array(zero, dtype), "zero")

    def floats(self, q: str) -> str:
        return self.node("DequantizeLinear", q, *self.schemes[q])

    def integers(self, x: str, shape: tuple[int, ...], scheme: tuple[str, str] | None = None) -> str:
        found = scheme or self.scheme(0.05)
        q = self.node("QuantizeLinear", x, *found)
        self.shapes[q], self.schemes[q] = shape, found
        return q

    def activation(self, x: str) -> str:
        choice = self.chance.integers(0, 4)
        if choice == 0:
            return self.node("Relu", x)
        if choice == 1:
            return self.node("Clip", x, self.constant(np.array(0, np.float32)), self.constant(np.array(6, np.float32)))
        return x

    def input(self, shape: tuple[int, ...]) -> str:
        name = f"in{len(self.inputs)}"
        self.inputs.append(name)
        self.shapes[name], self.schemes[name] = shape, self.scheme()
        return name

    def weight(self, shape: tuple[int, ...], axis: int, narrow: bool = False) -> str:
        """`narrow`: eight bits hold them without their zero points too."""
        dtype = self.dtype()
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        if narrow:
            low, high = max(low, ZERO - 128), min(high, ZERO + 127)
        array = self.chance.integers(low, high + 1, shape).astype(dtype)
        q = self.constant(array, "w")
        count = shape[axis] if self.chance.random() < 0.5 else 0
        zeros = np.zeros(count or (), dtype) if self.chance.random() < 0.6 else np.full(count or (), ZERO, dtype)
        if self.dead:
            for across in range(min(array.ndim, 2)):
                array.swapaxes(0, across)[self.chance.random(shape[across]) < self.dead] = zeros.reshape(-1)[0]
            self.weights[-1].CopyFrom(numpy_helper.from_array(array, q))
        scale = self.constant(self.scales(count), "w_scale")
        return self.node("DequantizeLinear", q, scale, self.constant(zeros, "w_zero"), axis=axis)

    def bias(self, count: int) -> str:
        if self.chance.random() < 0.5:
            return self.constant(self.chance.uniform(-1, 1, count).astype(np.float32), "bias")
        q = self.constant(self.chance.integers(-5000, 5000, count).astype(np.int32), "bias")
        return self.node("DequantizeLinear", q, self.constant(self.scales(0, 0.0004)))

    # -- blocks: from a tensor of integers [1, channels, height, width] to another one

    def conv(self, q: str) -> str:
        n, c, h, w = self.shapes[q]
        group = c if self.chance.random() < 0.4 else 1
        out = c if group > 1 else int(self.chance.integers(1, self.widest + 1))
        size = 1 if min(h, w) < 3 else int(self.chance.choice([1, 3]))
        pad = int(self.chance.integers(0, 2)) if size == 3 else 0
        step = int(self.chance.integers(1, 3))
        ins = [self.floats(q), self.weight((out, c // group, size, size), 0)]
        if self.chance.random() < 0.7:
            ins.append(self.bias(out))
        y = self.node("Conv", *ins, group=group, pads=[pad] * 4, strides=[step] * 2)
        space = tuple((n + 2 * pad - size) // step + 1 for n in (h, w))
        return self.integers(self.activation(y), (n, out, *space))

    def conv_transpose(self, q: str) -> str:
        n, c, h, w = self.shapes[q]
        group = c if self.chance.random() < 0.4 else 1
        each, size, step = (int(self.chance.integers(1, 4)) for _ in range(3))
        pad = int(self.chance.integers(0, size))
        space = tuple((n - 1) * step + size - pad for n in (h, w))
        if min(space) < 1 or max(space) > 12:
            return self.turn(q)
        ins = [self.floats(q), self.weight((c, each, size, size), 1, narrow=True)]
        if self.chance.random() < 0.7:
            ins.append(self.bias(each * group))
        y = self.node("ConvTranspose", *ins, group=group, strides=[step] * 2, pads=[pad, 0, 0, pad])
        return self.integers(self.activation(y), (n, each * group, *space))

    def add(self, q: str) -> str:
        other = self.input(self.shapes[q])
        return self.integers(self.activation(self.node("Add", self.floats(q), self.floats(other))), self.shapes[q])

    def mul(self, q: str) -> str:
        other = self.input((1, self.shapes[q][1], 1, 1))
        return self.integers(self.node("Mul", self.floats(q), self.floats(other)), self.shapes[q])

    def pool(self, q: str) -> str:
        n, c, h, w = self.shapes[q]
        if min(h, w) < 2:
            return q
        op = str(self.chance.choice(["AveragePool", "MaxPool"]))
        y = self.node(op, self.floats(q), kernel_shape=[2, 2], strides=[2, 2])
        same = self.schemes[q] if self.chance.random() < 0.5 else None
        return self.integers(y, (n, c, h // 2, w // 2), same)

    def global_pool(self, q: str) -> str:
        return self.integers(self.node("GlobalAveragePool", self.floats(q)), (*self.shapes[q][:2], 1, 1))

    def turn(self, q: str) -> str:
        n, c, h, w = self.shapes[q]
        y = self.node("Transpose", self.floats(q), perm=[0, 2, 3, 1])
        return self.integers(y, (n, h, w, c), self.schemes[q] if self.chance.random() < 0.5 else None)

    def join(self, q: str) -> str:
        n, c, h, w = self.shapes[q]
        other = self.input((n, 2, h, w))
        y = self.node("Concat", self.floats(q), self.floats(other), axis=1)
        return self.integers(self.activation(y), (n, c + 2, h, w))

    def squash(self, q: str) -> str:
        op = str(self.chance.choice(["Sigmoid", "Tanh", "HardSigmoid", "Relu"]))
        return self.integers(self.node(op, self.floats(q)), self.shapes[q])

    def dense(self, q: str) -> str:
        n, c, h, w = self.shapes[q]
        flat = self.node("Reshape", self.floats(q), self.constant(np.array([n, c * h * w])))
        out = int(self.chance.integers(1, self.widest + 1))
        if self.chance.random() < 0.5:
            y = self.node("Gemm", flat, self.weight((out, c * h * w), 0), self.bias(out), transB=1)
        else:
            y = self.node("Add", self.node("MatMul", flat, self.weight((c * h * w, out), 1)), self.bias(out))
        y = self.node("Reshape", self.floats(self.integers(y, (n, out))), self.constant(np.array([n, out, 1, 1])))
        return self.integers(y, (n, out, 1, 1))

    def product(self, q: str) -> str:
        n, c, h, w = self.shapes[q]
        y = self.node("MatMul", self.floats(q), self.floats(self.input((n, c, w, 3))))
        return self.integers(y, (n, c, h, 3))

    def sub(self, q: str) -> str:
        other = self.input(self.shapes[q])
        return self.integers(self.activation(self.node("Sub", self.floats(q), self.floats(other))), self.shapes[q])

    def reduced(self, q: str) -> str:
        axes = [[2, 3], [1], [3], [1, 2]][int(self.chance.integers(0, 4))]
        op = str(self.chance.choice(["ReduceMean", "ReduceSum", "ReduceMax"]))
        y = self.node(op, self.floats(q), self.constant(np.array(axes, np.int64), "axes"), keepdims=1)
        return self.integers(y, tuple(1 if axis in axes else n for axis, n in enumerate(self.shapes[q])))

    def chosen(self, q: str) -> str:
        op = str(self.chance.choice(["Max", "Min"]))
        y = self.node(op, self.floats(q), self.floats(self.input(self.shapes[q])))
        return self.integers(self.activation(y), self.shapes[q])

    def padded_pool(self, q: str) -> str:
        shape = self.shapes[q]
        if min(shape[2:]) < 2:
            return self.squash(q)
        y = self.node(
            "AveragePool", self.floats(q), kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1], count_include_pad=1
        )
        return self.integers(y, shape)

    def shares(self, q: str) -> str:
        return self.integers(self.node("Softmax", self.floats(q), axis=int(self.chance.integers(1, 4))), self.shapes[q])

    def normal(self, q: str) -> str:
        shape, x = self.shapes[q], self.floats(q)
        if self.chance.random() < 0.5:
            gain, bias = self.weight(shape[1:2], 0), self.bias(shape[1])
            return self.integers(self.node("InstanceNormalization", x, gain, bias), shape)
        gain = self.constant(self.chance.uniform(-3, 3, shape[-1]).astype(np.float32), "gain")
        return self.integers(self.node("LayerNormalization", x, gain, self.bias(shape[-1])), shape)

    def bottleneck(self, q: str) -> str:
        """Many channels, a window over each, few channels; sometimes with what came in added."""
        n, c, h, w = self.shapes[q]
        wide, size = int(self.chance.integers(2, 9)), int(self.chance.choice([3, 5]))
        step = int(self.chance.integers(1, 3))
        pads = [size // 2] * 4 if step == 1 else [0, 0, size - 1, size - 1]
        x = self.node("Conv", self.floats(q), self.weight((wide, c, 1, 1), 0), self.bias(wide))
        x = self.integers(self.activation(x), (n, wide, h, w))
        x = self.node(
            "Conv",
            self.floats(x),
            self.weight((wide, 1, size, size), 0),
            self.bias(wide),
            group=wide,
            pads=pads,
            strides=[step] * 2,
        )
        space = tuple((size_in + pads[0] + pads[2] - size) // step + 1 for size_in in (h, w))
        x = self.integers(self.activation(x), (n, wide, *space))
        adds = step == 1 and self.chance.random() < 0.6
        out = c if adds else int(self.chance.integers(1, self.widest + 1))
        y = self.node("Conv", self.floats(x), self.weight((out, wide, 1, 1), 0), self.bias(out))
        y = self.integers(y, (n, out, *space))
        if not adds:
            return y
        return self.integers(self.node("Add", self.floats(q), self.floats(y)), (n, out, *space))


BLOCKS = (
    Net.conv,
    Net.conv,
    Net.add,
    Net.mul,
    Net.pool,
    Net.global_pool,
    Net.turn,
    Net.join,
    Net.squash,
    Net.dense,
    Net.product,
    Net.shares,
    Net.normal,
    Net.conv_transpose,
    Net.sub,
    Net.reduced,
    Net.chosen,
    Net.padded_pool,
    Net.bottleneck,
)


# Those whose sums fit 32 bits with activations of 16.
SHORT_BLOCKS = tuple(BLOCKS.index(b) for b in (Net.conv, Net.add, Net.pool, Net.turn, Net.join, Net.sub, Net.reduced))


def network(seed: int, blocks: list[int], widest: int = 5, bits: int = 8, dead: float = 0.0) -> ModelProto:
    net = Net(np.random.default_rng(seed), widest, bits, dead)
    q = net.input((1, int(net.chance.integers(1, widest)), 6, 5))
    for block in blocks:
        q = BLOCKS[block](net, q)
    zeros = {tensor.name: numpy_helper.to_array(tensor) for tensor in net.weights}

    def info(name: str) -> ValueInfoProto:
        number = helper.np_dtype_to_tensor_dtype(zeros[net.schemes[name][1]].dtype)
        return helper.make_tensor_value_info(name, number, net.shapes[name])

    if not net.nodes or q in net.inputs:
        q = net.turn(q)
    graph = helper.make_graph(net.nodes, "qdq", [info(name) for name in net.inputs], [info(q)], net.weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21 if bits == 16 else 18)], ir_version=10)


def networks(widest: int = 5, fewest: int = 1, most: int = 4) -> st.SearchStrategy[ModelProto]:
    blocks = st.lists(st.integers(0, len(BLOCKS) - 1), min_size=fewest, max_size=most)
    return st.builds(network, st.integers(0, 1 << 30), blocks, st.just(widest))


def networks_of_16_bits() -> st.SearchStrategy[ModelProto]:
    blocks = st.lists(st.sampled_from(SHORT_BLOCKS), min_size=1, max_size=4)
    return st.builds(network, st.integers(0, 1 << 30), blocks, st.just(5), st.just(16))


def some_integers(model: ModelProto) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(0)
    found = {}
    for value in model.graph.input:
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        info = np.iinfo(dtype)
        found[value.name] = chance.integers(info.min, info.max + 1, shape).astype(dtype)
    return found


def chain_of_convolutions(*channels: int) -> ModelProto:
    """1x1 convolutions of 8-bit integers one after the other, over 5x5 elements."""
    chance = np.random.default_rng(0)
    nodes, weights = [], {"s": np.array(0.02, np.float32), "z": np.array(1, np.int8)}
    for number, (ins, outs) in enumerate(itertools.pairwise(channels)):
        weights[f"w{number}"] = chance.integers(-127, 128, (outs, ins, 1, 1)).astype(np.int8)
        weights[f"ws{number}"] = np.array(chance.uniform(0.003, 0.005), np.float32)
        weights[f"wz{number}"] = np.array(0, np.int8)
        quantized = [f"q{number}", "s", "z", f"w{number}", f"ws{number}", f"wz{number}", "s", "z"]
        nodes.append(helper.make_node("QLinearConv", quantized, [f"q{number + 1}"]))
    last = len(channels) - 1
    graph = helper.make_graph(
        nodes,
        "chain",
        [helper.make_tensor_value_info("q0", TensorProto.INT8, (1, channels[0], 5, 5))],
        [helper.make_tensor_value_info(f"q{last}", TensorProto.INT8, (1, channels[-1], 5, 5))],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
