"""Float networks at random, each with data that looks like something: `drawn(seed)` gives one after the other.

Families take turns: convolutions, dense layers, autoencoders, recurrent layers, transformers, trees of residuals and
signals of one dimension. Weights have channels of uneven sizes, as normalization that is folded leaves them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, checker, helper, numpy_helper

from benchmarks.drawn_data import Data

_UNEVEN = 0.5  # deviation of the logarithm of channels' sizes


@dataclass(frozen=True)
class Drawn:
    name: str
    model: ModelProto
    feeds: Callable[[int], list[dict[str, np.ndarray]]]


class _Draft:
    """A network as it grows; a tensor is its name, and `shapes` has that of each."""

    def __init__(self, chance: np.random.Generator, *shape: int) -> None:
        self.chance = chance
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}
        self.shapes: dict[str, tuple[int, ...]] = {"x": shape}

    def one(self, *choices: Any) -> Any:
        return choices[self.chance.integers(len(choices))]

    def node(self, op: str, *ins: str, shape: Sequence[int] | None = None, **attributes: Any) -> str:
        out = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, ins, [out], name=out, **attributes))
        self.shapes[out] = tuple(shape or self.shapes[ins[0]])
        return out

    def constant(self, array: Any, kind: type = np.float32) -> str:
        name = f"constant{len(self.weights)}"
        self.weights[name] = np.asarray(array, kind)
        return name

    def uneven(self, channels: int) -> np.ndarray:
        return np.asarray(np.exp(self.chance.normal(0, _UNEVEN, channels)))

    def random(self, *shape: int, fan: int) -> np.ndarray:
        return np.asarray(self.chance.standard_normal(shape) * np.sqrt(2 / fan))

    def conv(self, x: str, channels: int, width: int = 3, stride: int = 1, group: int = 1, dilation: int = 1) -> str:
        _, c_in, *size = self.shapes[x]
        window = [min(width, s) for s in size]
        w = self.random(channels, c_in // group, *window, fan=c_in // group * prod(window))
        w *= self.uneven(channels).reshape(-1, *(1 for _ in range(1 + len(size))))
        ins = [x, self.constant(w), self.constant(self.chance.normal(0, 0.2, channels))]
        pads = [(k - 1) * dilation // 2 for k in window]
        ends = [(k - 1) * dilation - pad for k, pad in zip(window, pads, strict=True)]
        out = (1, channels, *((s - 1) // stride + 1 for s in size))
        steps: dict[str, Any] = {"strides": [stride] * len(size), "dilations": [dilation] * len(size)}
        return self.node("Conv", *ins, shape=out, pads=[*pads, *ends], group=group, **steps)

    def dense(self, x: str, columns: int) -> str:
        """As Gemm of rows, or as MatMul and Add."""
        *rows, depth = self.shapes[x]
        w = self.constant(self.random(depth, columns, fan=depth) * self.uneven(columns))
        b, shape = self.constant(self.chance.normal(0, 0.2, columns)), (*rows, columns)
        if len(rows) == 1 and self.one(True, True, False):
            return self.node("Gemm", x, w, b, shape=shape)
        return self.node("Add", self.node("MatMul", x, w, shape=shape), b)

    def active(self, x: str, *kinds: str) -> str:
        kind = self.one(*(kinds or ("Relu", "Relu", "Clip", "LeakyRelu", "HardSwish", "Silu")))
        if kind == "Clip":
            return self.node("Clip", x, self.constant(0.0), self.constant(6.0))
        return self.node("Mul", x, self.node("Sigmoid", x)) if kind == "Silu" else self.node(kind, x)

    def pooled(self, x: str) -> str:
        batch, channels, *size = self.shapes[x]
        if min(size) < 4:
            return x
        kind, shape = self.one("MaxPool", "AveragePool"), (batch, channels, *(s // 2 for s in size))
        return self.node(kind, x, shape=shape, kernel_shape=[2] * len(size), strides=[2] * len(size))

    def averaged(self, x: str) -> str:
        batch, channels, *size = self.shapes[x]
        pooled = self.node("GlobalAveragePool", x, shape=(batch, channels, *(1 for _ in size)))
        return self.node("Flatten", pooled, shape=(batch, channels))

    def mean(self, x: str, axis: int) -> str:
        shape = tuple(s for n, s in enumerate(self.shapes[x]) if n != axis)
        return self.node("ReduceMean", x, self.constant([axis], np.int64), shape=shape, keepdims=0)

    def turned(self, x: str, *order: int) -> str:
        return self.node("Transpose", x, shape=[self.shapes[x][n] for n in order], perm=order)

    def normal(self, x: str) -> str:
        width = self.shapes[x][-1]
        numbers = self.constant(self.uneven(width)), self.constant(self.chance.normal(0, 0.2, width))
        return self.node("LayerNormalization", x, *numbers, axis=-1)

    def classified(self, x: str) -> str:
        y = self.dense(x, self.one(4, 10, 12))
        return self.node("Softmax", y, axis=-1) if self.one(True, False) else y

    def model(self, name: str, last: str) -> ModelProto:
        shapes = [(tensor, self.shapes[tensor]) for tensor in ("x", last)]
        x, y = (helper.make_tensor_value_info(tensor, TensorProto.FLOAT, shape) for tensor, shape in shapes)
        constants = [numpy_helper.from_array(array, key) for key, array in self.weights.items()]
        graph = helper.make_graph(self.nodes, name, [x], [y], constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        checker.check_model(made, full_check=True)
        return made


def _convolutions(chance: np.random.Generator) -> tuple[_Draft, str]:
    size = int(chance.choice([12, 16, 24]))
    net = _Draft(chance, 1, int(chance.choice([1, 3])), size, size)
    last = net.active(net.conv("x", net.one(8, 12, 16), stride=net.one(1, 2)))
    for _ in range(net.one(2, 3, 4)):
        channels = net.shapes[last][1]
        if net.one(True, False):
            last = net.active(net.conv(last, channels, group=channels, stride=net.one(1, 1, 2)))
            last = net.active(net.conv(last, net.one(16, 24, 32), 1))
        else:
            last = net.active(net.conv(last, net.one(12, 16, 24)))
        last = net.pooled(last) if net.one(True, False) else last
    return net, net.classified(net.averaged(last))


def _dense_layers(chance: np.random.Generator) -> tuple[_Draft, str]:
    net = _Draft(chance, 1, int(chance.choice([13, 32, 64, 120])))
    last = "x"
    for _ in range(net.one(2, 3, 4)):
        last = net.active(net.dense(last, net.one(24, 48, 64)), "Relu", "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Elu")
    return net, net.classified(last)


def _autoencoder(chance: np.random.Generator) -> tuple[_Draft, str]:
    if chance.random() < 0.6:
        width = int(chance.choice([40, 64, 128]))
        net = _Draft(chance, 1, width)
        last, sizes = "x", (64, 32, net.one(4, 8), 32, 64)
        kind = net.one("Relu", "Relu", "Tanh", "LeakyRelu")
        for size in sizes:
            last = net.active(net.dense(last, size), kind)
        return net, net.dense(last, width)
    net = _Draft(chance, 1, 1, 16, 16)
    last = net.active(net.conv(net.active(net.conv("x", 8, stride=2)), 16, stride=2))
    for channels in (16, 8):
        batch, c_in, *size = net.shapes[last]
        bigger, scales = (batch, c_in, *(2 * s for s in size)), net.constant([1, 1, 2, 2])
        last = net.node("Resize", last, "", scales, shape=bigger, mode=net.one("nearest", "linear"))
        last = net.active(net.conv(last, channels))
    y = net.conv(last, 1)
    return net, net.node("Sigmoid", y) if net.one(True, False) else y


def _recurrent(chance: np.random.Generator) -> tuple[_Draft, str]:
    steps, width, hidden = 16, int(chance.choice([6, 12])), int(chance.choice([16, 24]))
    net = _Draft(chance, 1, steps, width)
    last = net.active(net.dense("x", net.one(16, 24)), "Relu", "Tanh", "LeakyRelu")
    for _ in range(net.one(1, 2)):
        kind, depth = net.one("GRU", "LSTM"), net.shapes[last][-1]
        gates = {"GRU": 3, "LSTM": 4}[kind]
        w, r = (net.constant(net.random(1, gates * hidden, size, fan=2 * size)) for size in (depth, hidden))
        b = net.constant(net.chance.normal(0, 0.1, (1, 2 * gates * hidden)))
        along = net.turned(last, 1, 0, 2)
        more: dict[str, Any] = {"linear_before_reset": 1} if kind == "GRU" else {}
        y = net.node(kind, along, w, r, b, shape=(steps, 1, 1, hidden), hidden_size=hidden, **more)
        rows = net.node("Squeeze", y, net.constant([1], np.int64), shape=(steps, 1, hidden))
        last = net.turned(rows, 1, 0, 2)
    return net, net.classified(net.active(net.dense(net.mean(last, 1), 16), "Relu"))


def _transformer(chance: np.random.Generator) -> tuple[_Draft, str]:
    tokens, width, heads = 12, int(chance.choice([16, 32])), int(chance.choice([2, 4]))
    net = _Draft(chance, 1, tokens, int(chance.choice([8, 20])))
    last = net.dense("x", width)
    cut = net.constant([1, tokens, heads, width // heads], np.int64)
    whole = net.constant([1, tokens, width], np.int64)
    each, first = (1, tokens, heads, width // heads), net.one(True, False)
    for _ in range(net.one(1, 2)):
        read = net.normal(last) if first else last
        q, k, v = (net.node("Reshape", net.dense(read, width), cut, shape=each) for _ in range(3))
        q, k, v = net.turned(q, 0, 2, 1, 3), net.turned(k, 0, 2, 3, 1), net.turned(v, 0, 2, 1, 3)
        scores = net.node("MatMul", q, k, shape=(1, heads, tokens, tokens))
        root = net.constant((width / heads) ** -0.5 / 4)
        shares = net.node("Softmax", net.node("Mul", scores, root), axis=-1)
        mixed = net.turned(net.node("MatMul", shares, v, shape=(1, heads, tokens, width // heads)), 0, 2, 1, 3)
        last = net.node("Add", last, net.dense(net.node("Reshape", mixed, whole, shape=(1, tokens, width)), width))
        last = last if first else net.normal(last)
        wide = net.dense(net.normal(last) if first else last, 3 * width)
        last = net.node("Add", last, net.dense(net.active(wide, "Relu", "Gelu", "Silu"), width))
        last = last if first else net.normal(last)
    return net, net.classified(net.mean(last, 1))


def _tree(chance: np.random.Generator) -> tuple[_Draft, str]:
    net = _Draft(chance, 1, 3, 16, 16)
    channels = net.one(8, 16)
    last = net.active(net.conv("x", channels, stride=net.one(1, 2)), "Relu", "Clip")
    for _ in range(net.one(2, 3, 4)):
        inner = net.conv(net.active(net.conv(last, channels), "Relu", "LeakyRelu", "HardSwish"), channels)
        if net.one(True, False):
            short = net.node("Sigmoid", net.dense(net.averaged(inner), channels))
            gate = net.node("Reshape", short, net.constant([1, channels, 1, 1], np.int64), shape=(1, channels, 1, 1))
            inner = net.node("Mul", inner, gate)
        if net.one(True, True, False):
            last = net.node("Add", last, inner)
        else:
            batch, _, *size = net.shapes[last]
            last = net.node("Concat", last, inner, shape=(batch, net.shapes[last][1] + channels, *size), axis=1)
            last = net.conv(last, channels, 1)
        last = net.active(last, "Relu", "Relu", "LeakyRelu") if net.one(True, False) else last
    return net, net.classified(net.averaged(last))


def _signal(chance: np.random.Generator) -> tuple[_Draft, str]:
    net = _Draft(chance, 1, int(chance.choice([1, 3, 6])), int(chance.choice([64, 128])))
    last = net.active(net.conv("x", 12, net.one(5, 9), stride=net.one(1, 2)))
    for number in range(net.one(2, 3, 4)):
        inner = net.active(net.conv(last, 12, 3, dilation=2**number))
        last = net.node("Add", last, inner) if net.one(True, False) else inner
        last = net.pooled(last) if net.one(True, False) else last
    return net, net.classified(net.averaged(last)) if net.one(True, True, False) else net.conv(last, 1)


FAMILIES = {
    "convolutions": _convolutions,
    "dense": _dense_layers,
    "autoencoder": _autoencoder,
    "recurrent": _recurrent,
    "transformer": _transformer,
    "tree": _tree,
    "signal": _signal,
}


def drawn(seed: int) -> Iterator[Drawn]:
    """Without end. A network does not depend on how many are drawn."""
    for number in count():
        family = list(FAMILIES)[number % len(FAMILIES)]
        chance = np.random.default_rng([seed, number])
        net, last = FAMILIES[family](chance)
        name = f"{family}_{seed}_{number}"
        yield Drawn(name, net.model(name, last), Data(chance.spawn(1)[0], net.shapes["x"]).feeds)
