"""Units as operators of TFLite: which have a form there, and what it is.

Pictures lie channels-last there; of each value of the region `Writing.orders` says how its axes lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph.ir import Node, Value
from ...ops.quantize import DequantizeLinear, QuantizeLinear
from ...ops.transpose import Transpose
from ..api import No, Order, Region, Unit
from .flat import Network

LAST: Order = (0, 2, 3, 1)
ACTIVATIONS = {"Relu": 1}
POOLS = {"AveragePool": "AVERAGE_POOL_2D", "MaxPool": "MAX_POOL_2D"}
SAME, VALID = 0, 1
UNKNOWN = 1, 0  # scale and zero point of what is only moved


def why_not(unit: Unit) -> str:
    """Why a unit has no form, or nothing."""
    if unit.moves or (len(unit.nodes) == 1 and unit.nodes[0].op.name in ("Reshape", "MaxPool")):
        value = unit.nodes[0].output
        if value.type.dtype.name != "i8" or value.type.rank > 4:
            return "only int8 of up to four axes"
        return _not_a_pool(unit.nodes[0]) if unit.nodes[0].op.name == "MaxPool" else ""
    if not unit.is_quantized:
        return "it is not between int8 tensors"
    for value in (*unit.reads, *unit.makes):
        if value.type.dtype.name != "i8" or value.type.rank > 4:
            return f"{value.name!r} is {value.type}: only int8 of up to four axes"
    work = [node for node in unit.work if node.op.name != "Relu"]
    names = [node.op.name for node in unit.work]
    if len(work) != 1 or len(names) > 2 or (len(names) == 2 and names[1] != "Relu"):
        return "only one operator between quantized tensors, and Relu behind it"
    known = _FORMS.get(work[0].op.name)
    if known is None:
        return "the operator is not among those that are written for Vela"
    return _scales(unit) or known[0](unit, work[0])


def _scales(unit: Unit) -> str:
    for node in unit.nodes:
        if isinstance(node.op, QuantizeLinear | DequantizeLinear):
            source, scale = node.inputs[:2]
            if any(value.constant is None for value in node.inputs[1:] if value is not None):
                return "a scale is computed at run time"
            if scale is not None and scale.type.count != 1 and (source is None or source.constant is None):
                return "an activation has several scales"
    return ""


class Writing:
    """A region while it is written."""

    def __init__(self, region: Region) -> None:
        self.region, self.net = region, Network()
        self.orders: dict[Value, Order] = {}
        self.numbers: dict[Value, int] = {}
        self.scales = dict(_scales_of(region))

    def file(self) -> bytes | No:
        for value in self.region.inputs:
            self.orders[value] = LAST if self._is_picture(value) else tuple(range(value.type.rank))
            self.made(value)
        for unit in self.region.units:
            refused = self._unit(unit)
            if refused:
                return No(f"{' + '.join(unit.provenance[:2])}: {refused}")
        inputs, results = ([self.numbers[v] for v in values] for values in (self.region.inputs, self.region.results))
        return self.net.file(inputs, results)

    def made(self, value: Value, order: Order | None = None) -> int:
        """The tensor of a value."""
        if order is not None:
            self.orders[value] = order
        if value not in self.numbers:
            shape = [int(str(value.type.shape[axis])) for axis in self.orders[value]]
            self.numbers[value] = self.net.tensor(shape, *self.scales.get(value, UNKNOWN))
        return self.numbers[value]

    def _is_picture(self, value: Value) -> bool:
        """Does a convolution or pool read it?"""
        reals = [node.output for node, _ in value.uses if isinstance(node.op, DequantizeLinear)]
        names = {node.op.name for each in (value, *reals) for node, _ in each.uses}
        return value.type.rank == 4 and bool(names & {"Conv", *POOLS})

    def _unit(self, unit: Unit) -> str:
        first = unit.nodes[0]
        source = unit.reads[0]
        if unit.moves:
            assert isinstance(first.op, Transpose)
            perm = first.op.order(source.type.rank)
            self.orders[first.output] = tuple(perm.index(axis) for axis in self.orders[source])
            self.numbers[first.output] = self.made(source)
            return ""
        if not unit.is_quantized:
            return _pool(self, unit, first, 0) if first.op.name == "MaxPool" else self._reshape(source, first.output)
        work = unit.work[0]
        activation = ACTIVATIONS.get(unit.work[-1].op.name, 0) if len(unit.work) > 1 else 0
        return _FORMS[work.op.name][1](self, unit, work, activation)

    def _reshape(self, source: Value, result: Value) -> str:
        if not self.plain(source):
            return "a picture is reshaped that lies channels-last"
        number, made = self.made(source), self.made(result, tuple(range(result.type.rank)))
        sizes = self.net.tensor((result.type.rank,), 1, 0, np.array(result.type.shape, np.int32))
        self.net.operator("RESHAPE", [number, sizes], made, "ReshapeOptions")
        return ""

    def plain(self, value: Value) -> bool:
        """Do the elements of a value lie as its axes say?"""
        long = [axis for axis in self.orders[value] if value.type.shape[axis] != 1]
        return long == sorted(long)


def _scales_of(region: Region) -> list[tuple[Value, tuple[Any, Any]]]:
    """Scale and zero point of each value that is int8; movements keep them."""
    found: dict[Value, tuple[Any, Any]] = {}
    for unit in region.units:
        for node in unit.nodes:
            if isinstance(node.op, QuantizeLinear):
                found[node.output] = _parameters(node)
            elif isinstance(node.op, DequantizeLinear) and node.inputs[0] in unit.reads:
                found.setdefault(node.inputs[0], _parameters(node))
    moves = [(unit.reads[0], unit.makes[0]) for unit in region.units if not unit.is_quantized]
    for source, result in (*reversed(moves), *moves):
        for known, other in ((source, result), (result, source)):
            if known in found:
                found.setdefault(other, found[known])
    return [*found.items()]


def _parameters(node: Node) -> tuple[Any, Any]:
    scale, zero = node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None
    assert scale is not None and scale.constant is not None
    return scale.constant.array, 0 if zero is None or zero.constant is None else zero.constant.array


def _stored(real: Value | None) -> tuple[np.ndarray, Any, Any] | None:
    """A constant operand as it is stored, with its scale and zero point."""
    node = real.producer if real is not None else None
    if node is None or not isinstance(node.op, DequantizeLinear) or node.inputs[0] is None:
        return None
    constant = node.inputs[0].constant
    return None if constant is None else (constant.array, *_parameters(node))


def _takes_weights(unit: Unit, node: Node) -> str:
    weights = _stored(node.inputs[1])
    if weights is None or weights[0].dtype != np.int8 or np.any(weights[2]):
        return "its weights are no int8 constants with zero points of 0"
    if np.size(weights[1]) > 1 and _axis(node.inputs[1]) != 0:
        return "its weights have scales along another axis than that of the results"
    if len(node.inputs) > 2 and node.inputs[2] is not None:
        bias, count = _stored(node.inputs[2]), weights[0].shape[0]
        if bias is None or bias[0].dtype != np.int32 or np.any(bias[2]):
            return "its bias is no int32 constant with zero points of 0"
        if bias[0].size not in (1, count) or bias[0].shape[-1:] not in ((), (bias[0].size,)):
            return "its bias is not one number for each channel"
        if not np.allclose(bias[1], _input_scale(node) * weights[1], rtol=1e-5, atol=0):
            return "the scale of its bias is not that of its products"
    return ""


def _axis(real: Value | None) -> int:
    """Along which a constant operand has scales."""
    assert real is not None and real.producer is not None
    op = real.producer.op
    assert isinstance(op, DequantizeLinear)
    return op.along(real.producer.inputs[1].type.shape, real.type.shape) if real.producer.inputs[1] else 0


def _input_scale(node: Node) -> np.ndarray:
    real = node.inputs[0]
    assert real is not None and real.producer is not None
    return np.asarray(_parameters(real.producer)[0])


def _not_a_window(node: Node) -> str:
    op: Any = node.op
    if len(_kernel(node)) != 2 or op.auto_pad not in ("NOTSET", ""):
        return "only windows over two axes"
    return "padding is negative" if min(op.pads or (0,)) < 0 else ""


def _kernel(node: Node) -> Any:
    op: Any = node.op
    weights = node.inputs[1] if len(node.inputs) > 1 else None
    return op.kernel_shape or (weights.type.shape[2:] if weights else ())


def _padding(node: Node) -> int | None:
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


def _takes_conv(unit: Unit, node: Node) -> str:
    op: Any = node.op
    weights = node.inputs[1]
    assert weights is not None and node.inputs[0] is not None
    if weights.type.rank != 4:
        return "only convolutions of pictures"
    if op.group != 1 and (op.group != node.inputs[0].type.shape[1] or weights.type.shape[1] != 1):
        return "only convolutions of one group, or depthwise ones"
    return _takes_weights(unit, node) or _not_a_window(node)


def _takes_pool(unit: Unit, node: Node) -> str:
    if _result_parameters(unit) != [float(each) for each in _parameters(unit.nodes[0])]:
        return "its result has another scale or zero point"
    return _not_a_pool(node)


def _not_a_pool(node: Node) -> str:
    op: Any = node.op
    if op.ceil_mode or getattr(op, "count_include_pad", 0) or len(node.outputs) > 1:
        return "only plain pools"
    if any(d != 1 for d in getattr(op, "dilations", None) or ()):
        return "only pools without dilations"
    return _not_a_window(node) or ("" if _padding(node) is not None else f"padding {op.pads} has no word in TFLite")


def _takes_gemm(unit: Unit, node: Node) -> str:
    op: Any = node.op
    if (op.alpha, op.beta, op.transA, op.transB) != (1, 1, 0, 1):
        return "only a product with transposed weights, as dense layers have it"
    return _takes_weights(unit, node)


def _takes_two(unit: Unit, node: Node) -> str:
    a, b = node.inputs
    assert a is not None and b is not None
    return "" if a.type.shape == b.type.shape and a is not b else "only two tensors of one shape"


def _takes_softmax(unit: Unit, node: Node) -> str:
    op: Any = node.op
    rank = node.output.type.rank
    if op.axis not in (-1, rank - 1) or op.flattened:
        return "only along the last axis"
    return "" if _result_parameters(unit) == [1 / 256, -128] else "its result is not in steps of 1/256 from -128 on"


def _result_parameters(unit: Unit) -> list[float]:
    """Scale and zero point."""
    return [float(each) for each in _parameters(unit.nodes[-1])]


def _source(unit: Unit, node: Node, place: int = 0) -> Value:
    real = node.inputs[place]
    assert real is not None and real.producer is not None and real.producer.inputs[0] is not None
    return real.producer.inputs[0]


def _bias(writing: Writing, node: Node, scale: Any, weight_scale: Any, count: int) -> int:
    stored = _stored(node.inputs[2]) if len(node.inputs) > 2 else None
    data = np.zeros(count, np.int32) if stored is None else np.broadcast_to(stored[0].ravel(), count).astype(np.int32)
    scales = np.asarray(scale, np.float32) * np.asarray(weight_scale, np.float32)
    return writing.net.tensor((count,), scales, 0, data)


def _conv(writing: Writing, unit: Unit, node: Node, activation: int) -> str:
    source, result = _source(unit, node), unit.makes[0]
    op: Any = node.op
    if writing.orders[source] != LAST:
        return "its input does not lie channels-last"
    stored = _stored(node.inputs[1])
    assert stored is not None
    weights, scale, _ = stored
    depthwise = op.group != 1
    laid = weights.transpose((1, 2, 3, 0)) if depthwise else weights.transpose((0, 2, 3, 1))
    padding, given = _padding(node), writing.made(source)
    if padding is None:
        padding, given = VALID, _padded(writing, source, op.pads)
    ins = [given, writing.net.tensor(laid.shape, scale, 0, laid, 3 if depthwise else 0)]
    ins.append(_bias(writing, node, writing.scales[source][0], scale, weights.shape[0]))
    fields = _strides(op) | {"Padding": padding, "FusedActivationFunction": activation}
    dilations = op.dilations or (1, 1)
    fields |= {"DilationHFactor": dilations[0], "DilationWFactor": dilations[1]}
    fields |= {"DepthMultiplier": weights.shape[0] // op.group} if depthwise else {}
    name, options = ("DEPTHWISE_CONV_2D", "DepthwiseConv2DOptions") if depthwise else ("CONV_2D", "Conv2DOptions")
    writing.net.operator(name, ins, writing.made(result, LAST), options, **fields)
    return ""


def _padded(writing: Writing, source: Value, pads: Sequence[int]) -> int:
    """A picture with more around it, for the convolution behind, which Vela makes one with this."""
    around = [(0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)]
    sizes = [int(str(source.type.shape[axis])) + sum(more) for axis, more in zip(LAST, around, strict=True)]
    counts = writing.net.tensor((4, 2), 1, 0, np.array(around, np.int32))
    made = writing.net.tensor(sizes, *writing.scales[source])
    writing.net.operator("PAD", [writing.made(source), counts], made, "PadOptions")
    return made


def _strides(op: Any) -> dict[str, int]:
    strides = op.strides or (1, 1)
    return {"StrideH": strides[0], "StrideW": strides[1]}


def _pool(writing: Writing, unit: Unit, node: Node, activation: int) -> str:
    source = unit.reads[0]
    op: Any = node.op
    if writing.orders[source] != LAST:
        return "its input does not lie channels-last"
    kernel = op.kernel_shape
    fields = _strides(op) | {"FilterHeight": kernel[0], "FilterWidth": kernel[1]}
    fields |= {"Padding": _padding(node), "FusedActivationFunction": activation}
    number, made = writing.made(source), writing.made(unit.makes[0], LAST)
    writing.net.operator(POOLS[op.name], [number], made, "Pool2DOptions", **fields)
    return ""


def _gemm(writing: Writing, unit: Unit, node: Node, activation: int) -> str:
    source = _source(unit, node)
    stored = _stored(node.inputs[1])
    assert stored is not None
    weights, scale, _ = stored
    if not writing.plain(source):
        return "its input does not lie as its axes say"
    ins = [writing.made(source), writing.net.tensor(weights.shape, scale, 0, weights)]
    ins.append(_bias(writing, node, writing.scales[source][0], scale, weights.shape[0]))
    made = writing.made(unit.makes[0], (0, 1))
    writing.net.operator("FULLY_CONNECTED", ins, made, "FullyConnectedOptions", FusedActivationFunction=activation)
    return ""


def _two(writing: Writing, unit: Unit, node: Node, activation: int) -> str:
    sources = [_source(unit, node, place) for place in (0, 1)]
    if any(source not in writing.orders for source in sources):
        return "an operand is a constant"
    order = writing.orders[sources[0]]
    if writing.orders[sources[1]] != order:
        return "its operands lie in two ways"
    numbers, made = [writing.made(source) for source in sources], writing.made(unit.makes[0], order)
    options = f"{node.op.name}Options"
    writing.net.operator(node.op.name.upper(), numbers, made, options, FusedActivationFunction=activation)
    return ""


def _softmax(writing: Writing, unit: Unit, node: Node, activation: int) -> str:
    source = _source(unit, node)
    if not writing.plain(source) or activation:
        return "its input does not lie as its axes say"
    made = writing.made(unit.makes[0], tuple(range(source.type.rank)))
    writing.net.operator("SOFTMAX", [writing.made(source)], made, "SoftmaxOptions", Beta=1.0)
    return ""


_Takes = Callable[[Unit, Node], str]
_Writes = Callable[[Writing, Unit, Node, int], str]
_FORMS: dict[str, tuple[_Takes, _Writes]] = {
    "Conv": (_takes_conv, _conv),
    "AveragePool": (_takes_pool, _pool),
    "MaxPool": (_takes_pool, _pool),
    "Gemm": (_takes_gemm, _gemm),
    "Add": (_takes_two, _two),
    "Mul": (_takes_two, _two),
    "Softmax": (_takes_softmax, _softmax),
}


def orders_of(values: Sequence[Value], writing: Writing) -> dict[Value, Order]:
    """Those that do not lie as the graph has them."""
    return {value: order for value in values if (order := writing.orders[value]) != tuple(range(len(order)))}
