"""Conv, AveragePool and MaxPool over pictures and signals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....base.records import dataclass
from ....graph.ir import Node, Value
from ...api import Unit
from .chain import Chain
from .families import Form, Movement, form, movement
from .quantities import parameters, result_parameters, source
from .weights import Weights, weights_of
from .writing import Writing, picture_sizes

SAME, VALID = 0, 1


@dataclass(frozen=True)
class Window:
    """Over two axes; of a signal, over a single row."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]  # before, then behind

    @property
    def fields(self) -> dict[str, int]:
        return {"StrideH": self.strides[0], "StrideW": self.strides[1]}


def window_of(node: Node) -> Window:
    op: Any = node.op
    weights = node.inputs[1] if len(node.inputs) > 1 else None
    kernel = op.kernel_shape or (weights.type.shape[2:] if weights else ())
    row = (0,) * (2 - len(kernel))  # axes that a signal lacks
    begin, end = (op.pads or (0,) * 2 * len(kernel))[: len(kernel)], (op.pads or (0,) * 2 * len(kernel))[len(kernel) :]
    ones = (1,) * len(row)
    strides, dilations = op.strides or (1,) * len(kernel), getattr(op, "dilations", None) or (1,) * len(kernel)
    return Window((*ones, *kernel), (*ones, *strides), (*ones, *dilations), (*row, *begin, *row, *end))


def not_a_window(node: Node) -> str:
    op: Any = node.op
    if len(window_of(node).kernel) != 2 or op.auto_pad not in ("NOTSET", ""):
        return "only windows over one or two axes"
    return "padding is negative" if min(op.pads or (0,)) < 0 else ""


def padding_of(node: Node) -> int | None:
    """Of a window, or nothing where TFLite has no word for it."""
    window, wanted = window_of(node), []
    assert node.inputs[0] is not None
    shape = picture_sizes(node.inputs[0])[1:3]
    for size, k, stride, dilation in zip(shape, window.kernel, window.strides, window.dilations, strict=True):
        total = max((-(-size // stride) - 1) * stride + (k - 1) * dilation + 1 - size, 0)
        wanted.append((total // 2, total - total // 2))
    same = (wanted[0][0], wanted[1][0], wanted[0][1], wanted[1][1])
    if not any(window.pads):
        return VALID
    return SAME if window.pads == same else None


def _padded(writing: Writing, value: Value, pads: Sequence[int]) -> int:
    """A picture with more around it, for the convolution behind, which Vela makes one with this."""
    around = [(0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)]
    given = writing.picture(value)
    shape = [size + sum(more) for size, more in zip(picture_sizes(value), around, strict=True)]
    made = writing.net.tensor(shape, *writing.known(value))
    writing.net.operator("PAD", [given, writing.net.ints(around)], made, "PadOptions")
    return made


@form("Conv")
class Conv(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        node = chain.node
        assert node is not None and node.inputs[0] is not None and node.inputs[1] is not None
        op: Any = node.op
        weights, given = node.inputs[1], node.inputs[0]
        if weights.type.rank not in (3, 4):
            return "only convolutions of pictures and signals"
        if op.group != 1 and (op.group != given.type.shape[1] or weights.type.shape[1] != 1):
            return "only convolutions of one group, or depthwise ones"
        found = weights_of(node, chain, result_parameters(unit)[0])
        return found if isinstance(found, str) else not_a_window(node)

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        node = chain.node
        assert node is not None
        op: Any = node.op
        weights, value = weights_of(node, chain, result_parameters(unit)[0]), source(node)
        assert isinstance(weights, Weights)
        padding, window = padding_of(node), window_of(node)
        given = writing.picture(value) if padding is not None else _padded(writing, value, window.pads)
        fields = window.fields | {"Padding": VALID if padding is None else padding}
        fields |= {"DilationHFactor": window.dilations[0], "DilationWFactor": window.dilations[1]}
        fields |= {"FusedActivationFunction": chain.activation(unit) or 0}
        multiplier = weights.data.shape[0] // op.group if op.group > 1 else 0
        writing.made_picture(
            unit.makes[0], lambda made: convolved(writing, (value, given), weights, made, multiplier, **fields)
        )
        return ""


def convolved(
    writing: Writing, given: tuple[Value, int], weights: Weights, made: int, multiplier: int, **fields: Any
) -> None:
    """`multiplier`: results for each channel of a depthwise convolution; 0: it is none."""
    value, number = given
    data = weights.data if weights.data.ndim == 4 else np.expand_dims(weights.data, 2)
    laid = data.transpose((1, 2, 3, 0) if multiplier else (0, 2, 3, 1))
    ins = [number, writing.net.tensor(laid.shape, weights.scales, weights.zero, laid, 3 if multiplier else 0)]
    ins.append(writing.bias(value, weights))
    name, options = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if multiplier else ("CONV_2D", "Conv2DOptions")
    fields |= {"DepthMultiplier": multiplier} if multiplier else {}
    writing.net.operator(name, ins, made, options, **fields)


def _not_a_pool(node: Node) -> str:
    op: Any = node.op
    if op.ceil_mode or getattr(op, "count_include_pad", 0) or len(node.outputs) > 1:
        return "only plain pools"
    if any(d != 1 for d in getattr(op, "dilations", None) or ()):
        return "only pools without dilations"
    return not_a_window(node) or ("" if padding_of(node) is not None else f"padding {op.pads} has no word in TFLite")


def _pool(writing: Writing, node: Node, value: Value, result: Value, name: str, activation: int | None) -> str:
    window = window_of(node)
    fields = window.fields | {"FilterHeight": window.kernel[0], "FilterWidth": window.kernel[1]}
    fields |= {"Padding": padding_of(node) or 0, "FusedActivationFunction": activation or 0}
    given = writing.picture(value)
    writing.made_picture(result, lambda made: writing.net.operator(name, [given], made, "Pool2DOptions", **fields))
    return ""


@form("AveragePool", "MaxPool")
class Pool(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        if result_parameters(unit) != tuple(float(each) for each in parameters(unit.nodes[0])):
            return "its result has another scale or zero point"
        if not chain.is_plain or any(node.op.name not in (chain.node.op.name, "Relu") for node in unit.work):
            return "only Relu may stand behind a pool"
        return _not_a_pool(chain.node)

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        name = {"AveragePool": "AVERAGE_POOL_2D", "MaxPool": "MAX_POOL_2D"}[chain.node.op.name]
        return _pool(writing, chain.node, source(chain.node), unit.makes[0], name, chain.activation(unit))


@movement("MaxPool")
class MaxPool(Movement):
    @staticmethod
    def takes(node: Node) -> str:
        return _not_a_pool(node)

    @staticmethod
    def write(writing: Writing, node: Node) -> str:
        assert node.inputs[0] is not None
        return _pool(writing, node, node.inputs[0], node.output, "MAX_POOL_2D", 0)
