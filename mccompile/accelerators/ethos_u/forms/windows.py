"""Conv, AveragePool and MaxPool over pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....graph.ir import Node, Value
from ...api import Unit
from .chain import Chain
from .families import Form, Movement, form, movement
from .quantities import LAST, parameters, result_parameters, sizes, source
from .weights import Weights, weights_of
from .writing import Writing

SAME, VALID = 0, 1


def not_a_window(node: Node) -> str:
    op: Any = node.op
    if len(_kernel(node)) != 2 or op.auto_pad not in ("NOTSET", ""):
        return "only windows over two axes"
    return "padding is negative" if min(op.pads or (0,)) < 0 else ""


def _kernel(node: Node) -> Any:
    op: Any = node.op
    weights = node.inputs[1] if len(node.inputs) > 1 else None
    return op.kernel_shape or (weights.type.shape[2:] if weights else ())


def padding_of(node: Node) -> int | None:
    """Of a window, or nothing where TFLite has no word for it."""
    op: Any = node.op
    shape = node.inputs[0].type.shape if node.inputs[0] else ()
    strides, dilations = op.strides or (1, 1), getattr(op, "dilations", None) or (1, 1)
    pads = tuple(op.pads or (0, 0, 0, 0))
    wanted = []
    for size, k, stride, dilation in zip(shape[2:], _kernel(node), strides, dilations, strict=True):
        total = max((-(-int(str(size)) // stride) - 1) * stride + (k - 1) * dilation + 1 - int(str(size)), 0)
        wanted.append((total // 2, total - total // 2))
    same = (wanted[0][0], wanted[1][0], wanted[0][1], wanted[1][1])
    if not any(pads):
        return VALID
    return SAME if pads == same else None


def _strides(op: Any) -> dict[str, int]:
    strides = op.strides or (1, 1)
    return {"StrideH": strides[0], "StrideW": strides[1]}


def _padded(writing: Writing, value: Value, pads: Sequence[int]) -> int:
    """A picture with more around it, for the convolution behind, which Vela makes one with this."""
    around = [(0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)]
    given = writing.ordered(value, LAST)
    shape = [sizes(value)[axis] + sum(more) for axis, more in zip(LAST, around, strict=True)]
    made = writing.net.tensor(shape, *writing.scales[value])
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
        if weights.type.rank != 4:
            return "only convolutions of pictures"
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
        padding = padding_of(node)
        given = writing.ordered(value, LAST) if padding is not None else _padded(writing, value, op.pads)
        dilations = op.dilations or (1, 1)
        fields = _strides(op) | {"Padding": VALID if padding is None else padding}
        fields |= {"DilationHFactor": dilations[0], "DilationWFactor": dilations[1]}
        fields |= {"FusedActivationFunction": chain.activation(unit) or 0}
        multiplier = weights.data.shape[0] // op.group if op.group > 1 else 0
        convolved(writing, (value, given), weights, writing.made(unit.makes[0], LAST), multiplier, **fields)
        return ""


def convolved(
    writing: Writing, given: tuple[Value, int], weights: Weights, made: int, multiplier: int, **fields: Any
) -> None:
    """`multiplier`: results for each channel of a depthwise convolution; 0: it is none."""
    value, number = given
    laid = weights.data.transpose((1, 2, 3, 0) if multiplier else (0, 2, 3, 1))
    ins = [number, writing.net.tensor(laid.shape, weights.scales, 0, laid, 3 if multiplier else 0)]
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
    op: Any = node.op
    fields = _strides(op) | {"FilterHeight": op.kernel_shape[0], "FilterWidth": op.kernel_shape[1]}
    fields |= {"Padding": padding_of(node) or 0, "FusedActivationFunction": activation or 0}
    given = writing.ordered(value, LAST)
    writing.net.operator(name, [given], writing.made(result, LAST), "Pool2DOptions", **fields)
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
