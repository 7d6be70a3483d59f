"""Add, Sub, Mul, Max and Min of two tensors, one of which may be a constant or be repeated along axes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.ir import Node, Value
from ...api import Order, Unit
from .chain import Chain
from .families import Form, form
from .quantities import is_activation, parameters, quantized, real_of, result_parameters, sizes, source, stored
from .writing import Writing

_OPTIONS = {
    "Add": "AddOptions",
    "Sub": "SubOptions",
    "Mul": "MulOptions",
    "Max": "MaximumMinimumOptions",
    "Min": "MaximumMinimumOptions",
}
_NAMES = {"Max": "MAXIMUM", "Min": "MINIMUM"}


@form(*_OPTIONS)
class Pair(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        node = chain.node
        assert node is not None
        if len(node.inputs) != 2 or node.inputs[0] is node.inputs[1] or not chain.is_plain:
            return "only two tensors, and an activation behind them"
        for real in node.inputs:
            if not is_activation(real) and _constant(real, unit.makes[0]) is None:
                return "an operand is not a quantized tensor"
        if _gives_more(node):
            return "both operands are repeated"
        if node.op.name in _NAMES:
            quantizers = [real.producer for real in node.present_inputs if is_activation(real)]
            known = {tuple(float(each) for each in parameters(each)) for each in quantizers if each is not None}
            if known != {result_parameters(unit)} or chain.activation(unit) != 0:
                return "operands and result have several scales or zero points"
        return ""

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        node = chain.node
        assert node is not None
        rank = node.output.type.rank
        values = [source(node, place) for place in (0, 1) if is_activation(node.inputs[place])]
        whole = [value for value in values if value.type.rank == rank]
        order = writing.orders[whole[0]] if whole else tuple(range(rank))
        among = result_parameters(unit) if node.op.name in _NAMES else None
        numbers = [_operand(writing, real, (order, unit.makes[0]), among) for real in node.present_inputs]
        name, made = node.op.name, writing.made(unit.makes[0], order)
        fields = {} if name in _NAMES else {"FusedActivationFunction": chain.activation(unit)}
        writing.net.operator(_NAMES.get(name, name.upper()), numbers, made, _OPTIONS[name], **fields)
        return ""


def _constant(real: Value | None, like: Value) -> tuple[np.ndarray, Any, Any] | None:
    """A constant in the integers of a tensor, with one scale and zero point; a float has them if it is one number."""
    dtype = like.type.dtype.numpy
    found, middle = stored(real), 0 if dtype.kind == "i" else 128
    if found is not None:
        data, scale, zero = found
        if data.dtype.itemsize != 1 or scale.size != 1:
            return None
        more = middle - (0 if data.dtype.kind == "i" else 128)
        return (data.astype(np.int16) + more).astype(dtype), scale, zero.astype(np.int16) + more
    number = real_of(real)
    if number is None or number.size != 1 or number.item() == 0:
        return None
    return np.full(number.shape, np.sign(number) * 127 + middle, dtype), np.abs(number) / 127, middle


def _rounded(real: Value, scale: float, zero: float, like: Value) -> tuple[np.ndarray, Any, Any]:
    """A constant in steps of `scale`. Rounding keeps the order of numbers, so the larger of two stays the larger."""
    number = real_of(real)
    assert number is not None
    return quantized(number, scale, zero, like), scale, zero


def _gives_more(node: Node) -> bool:
    """Is the result larger than each operand?"""
    count = np.prod(sizes(node.output), dtype=np.int64)
    return all(np.prod(sizes(real), dtype=np.int64) != count for real in node.present_inputs)


def _operand(writing: Writing, real: Value, made: tuple[Order, Value], among: tuple[float, float] | None) -> int:
    """`made`: how the result lies, and the result. `among`: scale and zero point of the integers that it is compared
    with as it is stored."""
    order, result = made
    missing, known = len(order) - real.type.rank, _constant(real, result)
    if known is not None and among is not None:
        known = _rounded(real, *among, result)
    if known is not None:
        data, scale, zero = known
        laid = data.reshape((1,) * missing + data.shape).transpose(order)
        return writing.net.tensor(laid.shape, scale, zero, laid)
    assert real.producer is not None and real.producer.inputs[0] is not None
    value = real.producer.inputs[0]
    if not missing:
        return writing.ordered(value, order)
    shape = [1] * missing + sizes(value)
    given = writing.ordered(value, range(value.type.rank))
    plain = writing.reshaped(given, shape, *writing.known(value))
    return writing.turned(plain, shape, tuple(range(len(order))), order, writing.known(value))
