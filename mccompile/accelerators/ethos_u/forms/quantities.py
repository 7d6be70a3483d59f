"""What is known of a tensor when regions are written: scale, zero point, constants as stored and as floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.ir import Node, Value
from ....ops.quantize import DequantizeLinear
from ...api import Order, Unit

LAST: Order = (0, 2, 3, 1)  # of a picture, channels last


def channels_last(rank: int) -> Order:
    """Of a picture or a signal."""
    return (0, *range(2, rank), 1)


def parameters(node: Node) -> tuple[np.ndarray, np.ndarray]:
    """Scale and zero point of a QuantizeLinear or DequantizeLinear."""
    scale, zero = node.inputs[1], node.inputs[2] if len(node.inputs) > 2 else None
    assert scale is not None and scale.constant is not None
    return scale.constant.array, np.array(0) if zero is None or zero.constant is None else zero.constant.array


def result_parameters(unit: Unit) -> tuple[float, float]:
    scale, zero = parameters(unit.nodes[-1])
    return float(scale), float(zero)


def given_parameters(value: Value) -> tuple[float, float]:
    """Scale and zero point of an operand."""
    real = next(node for node, _ in value.uses if isinstance(node.op, DequantizeLinear))
    scale, zero = parameters(real)
    return float(scale), float(zero)


def stored(real: Value | None) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """A constant operand as it is stored, with its scale and zero point."""
    node = real.producer if real is not None else None
    if node is None or not isinstance(node.op, DequantizeLinear) or node.inputs[0] is None:
        return None
    constant = node.inputs[0].constant
    return None if constant is None else (constant.array, *parameters(node))


def axis_of(real: Value) -> int:
    """Along which a constant operand has scales."""
    assert real.producer is not None and real.producer.inputs[1] is not None
    op = real.producer.op
    assert isinstance(op, DequantizeLinear)
    return op.along(real.producer.inputs[1].type.shape, real.type.shape)


def real_of(value: Value | None) -> np.ndarray | None:
    """A constant as numbers, quantized or not."""
    if value is None:
        return None
    if value.constant is not None:
        return np.asarray(value.constant.array, np.float64)
    found = stored(value)
    if found is None:
        return None
    shapes = [-1 if axis == axis_of(value) else 1 for axis in range(found[0].ndim)]
    scale, zero = (each.reshape(shapes) if each.size > 1 else each for each in found[1:])
    return np.asarray((found[0].astype(np.float64) - zero) * np.asarray(scale, np.float64))


def quantized(number: np.ndarray, scale: float, zero: float, like: Value) -> np.ndarray:
    """In steps of `scale`, as integers of the type that another tensor has."""
    dtype: Any = like.type.dtype.numpy
    ends = np.iinfo(dtype)
    return np.asarray(np.clip(np.rint(number / scale) + zero, ends.min, ends.max), dtype)


def integers(value: Value | None) -> list[int] | None:
    """A constant of shapes, axes and the like."""
    if value is None or value.constant is None:
        return None
    return [int(each) for each in value.constant.array.ravel()]


def source(node: Node, place: int = 0) -> Value:
    """The integers behind an operand."""
    real = node.inputs[place]
    assert real is not None and real.producer is not None and real.producer.inputs[0] is not None
    return real.producer.inputs[0]


def is_activation(real: Value | None) -> bool:
    """Is it a quantized tensor that is computed, as floats?"""
    node = real.producer if real is not None else None
    dequantized = node is not None and isinstance(node.op, DequantizeLinear)
    return dequantized and node is not None and node.inputs[0] is not None and node.inputs[0].constant is None


def sizes(value: Value) -> list[int]:
    return [int(str(size)) for size in value.type.shape]


def attribute(node: Node, name: str, default: Any = None) -> Any:
    found = getattr(node.op, name, None)
    return default if found is None else found
