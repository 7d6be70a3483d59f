"""The table that replaces elementwise operators between one tensor of 8-bit integers and another."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from ....base.dtypes import f32, f64
from ....expr.evaluate import evaluate
from ....expr.ir import operand
from ....graph.ir import Value
from ....ops.choose import Clip
from ....ops.rules.elementwise import Elementwise
from ...quantized.quantized_tensors import Scheme, dequantized, exact

DEEPEST = 30  # of a chain of operators


class _NoTable(Exception):
    pass


def table(value: Value, target: Scheme) -> tuple[Value, np.ndarray] | None:
    """The 8-bit tensor that `value` follows from element by element, and its quantized value for every bit pattern.
    Operators are computed in f64, so results are right unless they are closer to a half than that can tell."""
    sources: list[Value] = []
    try:
        numbers = _evaluated(value, sources, DEEPEST)
    except _NoTable:
        return None
    if not sources or sources[0].type.shape != value.type.shape or numbers.shape != (256,):
        return None
    low, high = target.low, target.high
    entries = []
    for number in numbers.tolist():
        if math.isnan(number):
            return None
        inside = min(max(number, float(-(1 << 20) * target.scale)), float((1 << 20) * target.scale))
        entries.append(min(max(round(Fraction(inside) / target.scale) + target.zero, low), high))
    return sources[0], np.array(entries, target.dtype.numpy)


def _evaluated(value: Value, sources: list[Value], depth: int) -> np.ndarray:
    """What a float is for each of the 256 values of the tensor it comes from; constants as single numbers."""
    found, node = dequantized(value), value.producer
    constant = exact(value) if value.type.count == 1 else None
    if constant is not None:
        return np.array(float(constant[1][0]))
    if found is not None and node is not None and node.inputs[0] is not None:
        source = node.inputs[0]
        if not found.is_bytes or source.constant is not None or any(source is not other for other in sources):
            raise _NoTable
        sources.append(source)
        integers = np.arange(256, dtype=np.uint8).view(found.dtype.numpy).astype(np.int64)
        return np.array([float((q - found.zero) * found.scale) for q in integers.tolist()])
    if node is None or depth == 0 or value.type.dtype is not f32 or not isinstance(node.op, Elementwise | Clip):
        raise _NoTable
    if node.op.domain or any(operand is not None and operand.type.dtype is not f32 for operand in node.inputs):
        raise _NoTable
    args = [None if v is None else _evaluated(v, sources, depth - 1) for v in node.inputs]
    given = [arg for arg in args if arg is not None]
    if isinstance(node.op, Clip):
        low, high = ([*args, None, None][i] for i in (1, 2))
        bounded = np.maximum(given[0], -np.inf if low is None else low)
        return np.asarray(np.minimum(bounded, np.inf if high is None else high))
    expr = node.op.element([operand(i, f64) for i in range(len(given))])
    if expr.dtype is not f64:
        raise _NoTable
    return evaluate(expr, given, np.broadcast_shapes(*(arg.shape for arg in given)))
