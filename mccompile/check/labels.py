"""Which integers of a graph are labels: numbers of classes, places, counts. Rounding never makes 7 of 3 there; it only
decides between candidates that come out equal.

Invariant: 8 and 16 bits, and integers that arithmetic on tensors or the rounding of floats makes, are numbers. All
others are labels, and so are bools and strings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.ir import Graph, Value

# Their results are sums and roundings, to which a step more or less may belong.
_NUMBERS = {"MatMulInteger", "ConvInteger", "QuantizeLinear", "DynamicQuantizeLinear", "Round", "Floor", "Ceil"}
_MOVES = {
    "Abs", "Add", "Cast", "Clip", "Concat", "Div", "Expand", "Flatten", "Gather", "Identity", "Max", "Min", "Mul",
    "Neg", "Pad", "ReduceSum", "Reshape", "Slice", "Split", "Squeeze", "Sub", "Transpose", "Unsqueeze", "Where",
}  # fmt: skip


def labels(graph: Graph) -> frozenset[str]:
    """The names of outputs that are labels."""
    return frozenset(value.name for value in graph.outputs if _is_label(value, set()))


def _is_label(value: Value, seen: set[Value]) -> bool:
    dtype = value.type.dtype
    if dtype.kind in ("bool", "string"):
        return True
    if not dtype.is_integer or dtype.bits <= 16:
        return False
    return not _is_number(value, seen)


def _is_number(value: Value, seen: set[Value]) -> bool:
    node = value.producer
    if node is None or value in seen:
        return False
    seen.add(value)
    if node.op.name in _NUMBERS:
        return True
    operands = [each for each in node.present_inputs if each.constant is None]
    if node.op.name == "Cast" and operands:
        source = operands[0]
        return _is_number(source, seen) if source.type.dtype.is_integer else source.type.dtype.is_float
    if node.op.name not in _MOVES:
        return False
    return any(_is_number(each, seen) for each in operands)


def unexplained(got: Any, candidates: Sequence[Any]) -> int:
    """How many elements are not among those that the reference gives when its rounding goes another way."""
    if not isinstance(got, np.ndarray):
        return 0
    same = [each for each in candidates if isinstance(each, np.ndarray) and each.shape == got.shape]
    known = np.zeros(got.shape, bool)
    for each in same:
        known |= np.asarray(got == each, bool)
    return int(np.count_nonzero(~known))
