"""Weights of quantized layers in fewer bits: integers between -7 and 7, or -1, 0 and 1, with a scale per channel.

What the layer's operator reads stays behind DequantizeLinear; the bias keeps its value, in units of the new scales.
Scales are those with the least square error among a few that cut off the largest weights. Layers whose weights or
biases others read too, or whose bias is not quantized, stay as they are.
"""

from __future__ import annotations

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import i4, i8
from ..base.names import new_name
from ..graph.ir import Graph, Node, Value
from ..ops.quantize import DequantizeLinear

LAYERS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
_SHARES = np.linspace(0.2, 1.0, 33)  # of the largest weight, to be the largest that can be said
_ROUNDS = 4  # of finding the best scale for integers, and integers for the scale


def narrow_layers(graph: Graph, most: int) -> int:
    """How many layers there are whose weights lie between -most and most now."""
    names = {value.name for value in graph.values()}
    return sum(_narrow(graph, node, most, names) for node in list(graph.nodes) if node.op.name in LAYERS)


def _narrow(graph: Graph, layer: Node, most: int, names: set[str]) -> bool:
    x, weights, *more = (_dequantized(value) for value in layer.inputs)
    bias = more[0] if more else None
    if x is None or weights is None or (more and bias is None) or len(weights.output.uses) != 1:
        return False
    if bias is not None and len(bias.output.uses) != 1:
        return False
    (stored, scale), op = _constants(weights), weights.op
    step = x.inputs[1].constant if x.inputs[1] is not None else None
    if stored is None or scale is None or step is None or step.array.size != 1 or stored.type.dtype is not i8:
        return False
    assert isinstance(op, DequantizeLinear)
    axis = op.axis % stored.array.ndim
    rows = np.moveaxis(stored.array.astype(np.float64), axis, 0) if scale.array.size > 1 else stored.array[None] * 1.0
    wide = scale.array.reshape(-1).astype(np.float64)
    integers, factors = _fitted(rows.reshape(len(rows), -1), most)
    shaped = integers.reshape(rows.shape)
    shaped = np.moveaxis(shaped, 0, axis) if scale.array.size > 1 else shaped[0]
    scales = (wide * factors).astype(np.float32)
    numbers = {0: shaped.astype(i4.numpy), 1: scales.reshape(scale.array.shape)}
    if bias is not None:
        amounts, unit = _constants(bias)
        if amounts is None or unit is None:
            return False
        own = (scales * np.float32(step.array.reshape(()))).reshape(unit.array.shape if unit.array.size > 1 else -1)
        real = amounts.array * unit.array.astype(np.float64)
        _give(graph, bias, {0: np.rint(real / own).astype(np.int32), 1: own}, names)
    _give(graph, weights, numbers, names)
    if len(weights.inputs) > 2 and weights.inputs[2] is not None:
        graph.set_input(weights, 2, None)  # the zero point, which is 0
    return True


def _dequantized(value: Value | None) -> Node | None:
    node = value.producer if value is not None else None
    return node if node is not None and isinstance(node.op, DequantizeLinear) else None


def _constants(node: Node) -> tuple[Constant | None, Constant | None]:
    stored, scale = node.inputs[:2]
    zero = node.inputs[2] if len(node.inputs) > 2 else None
    if stored is None or scale is None or (zero is not None and (zero.constant is None or zero.constant.array.any())):
        return None, None
    return stored.constant, scale.constant


def _give(graph: Graph, node: Node, arrays: dict[int, np.ndarray], names: set[str]) -> None:
    for position, array in arrays.items():
        old = node.inputs[position]
        assert old is not None
        name = new_name(f"{old.name}/narrow", names)  # layers may share a scale, and have their own now
        graph.set_input(node, position, Value.of_constant(name, Constant.of(array)))


def _fitted(rows: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Integers of each row, and the factor with which they are closest to it: 1 for rows of zeros, so biases stay."""
    largest = np.abs(rows).max(1)
    top = np.where(largest > 0, largest, 1)
    best, chosen = np.full(len(rows), np.inf), np.ones(len(rows))
    integers = np.zeros(rows.shape, np.int64)
    for share in _SHARES:
        factors = top * share / most
        for _ in range(_ROUNDS):
            found = np.clip(np.rint(rows / factors[:, None]), -most, most)
            squares = (found**2).sum(1)
            factors = np.where(squares > 0, (rows * found).sum(1) / np.maximum(squares, 1), factors)
        error = ((found * factors[:, None] - rows) ** 2).sum(1)
        better = error < best
        best, chosen = np.where(better, error, best), np.where(better, factors, chosen)
        integers[better] = found[better].astype(np.int64)
    return integers, np.where(largest > 0, chosen, 1)
