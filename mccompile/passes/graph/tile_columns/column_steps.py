"""Which rows or columns of its operands a node reads for some rows or columns of its result, and the node that computes
only these columns. Operators that are not listed read all columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from ....base.dims import static
from ....base.records import dataclass
from ....graph.ir import Node, Op
from ....ops.api import normal_axis
from ....ops.choose import Clip
from ....ops.concat import Concat
from ....ops.conv import Conv, ConvInteger
from ....ops.fixed_point import Lookup, SumPool
from ....ops.pool import AveragePool, GlobalAveragePool, GlobalMaxPool, MaxPool
from ....ops.quantize import DequantizeLinear, QuantizeLinear
from ....ops.rules.elementwise import Elementwise
from ....ops.rules.window import Window
from ....ops.transpose import Transpose

Span = tuple[int, int]  # the first row or column, and the one behind the last
Axes = tuple[int, int]  # of rows and of columns
ROWS, COLUMNS = 0, 1  # places in them
USUAL: Axes = (2, 3)


@dataclass(frozen=True)
class ColumnStep:
    """`reads`: for rows or columns of the result those of operands, by position; they may lie outside of an operand,
    where padding is. `op`: the operator for columns with so many of padding before and after them."""

    axes: Axes  # of operands
    reads: Callable[[int, Span], Mapping[int, Span]]
    op: Callable[[int, int], Op]
    alike: bool = False  # a column of the result takes the same column of each operand
    macs: int = 0  # for one column of the result


def column_step(node: Node, axes: Axes) -> ColumnStep | None:
    """For rows and columns of the result along these axes. None: the node cannot be computed by columns."""
    if node.regions or len(list(node.present_outputs)) != 1 or node.outputs[0] is None:
        return None
    types = [value.type for value in (*node.present_inputs, node.output)]
    if not all(type.is_static and type.max_bytes for type in types) or node.output.type.rank != 4:
        return None  # without elements there is nothing to compute by columns
    op = node.op
    if isinstance(op, Elementwise | Clip | QuantizeLinear | DequantizeLinear):
        return _elementwise(node, axes)
    if isinstance(op, Lookup):
        return _alike(op, axes, [0])
    if isinstance(op, Transpose) and op.perm is not None:
        return _alike(op, (op.perm[axes[0]], op.perm[axes[1]]), [0])
    if isinstance(op, Concat) and normal_axis(op.axis, 4) not in axes:
        return _alike(op, axes, range(len(node.inputs)))
    if axes != USUAL:
        return None
    if isinstance(op, Conv | ConvInteger):
        return _sliding(op, op.window(node.site()), _macs(node))
    if isinstance(op, MaxPool | AveragePool | SumPool) and not op.ceil_mode:
        return _sliding(op, op.window(node.site())[0])
    if isinstance(op, GlobalAveragePool | GlobalMaxPool):
        return _of_all(node)
    return None


def _elementwise(node: Node, axes: Axes) -> ColumnStep | None:
    """Operands without rows and columns of their own stay whole."""
    places, size = [], [node.output.type.shape[axis] for axis in axes]
    for place, value in enumerate(node.inputs):
        shape = (1,) * 4 if value is None else (*[1] * (4 - value.type.rank), *value.type.shape)
        own = [shape[axis] for axis in axes]
        if value is not None and value.type.rank == 4 and own == size:
            places.append(place)
        elif own != [1, 1]:
            return None
    return _alike(node.op, axes, places)


def _alike(op: Op, axes: Axes, positions: Iterable[int]) -> ColumnStep:
    """Column by column."""
    places = tuple(positions)
    return ColumnStep(axes, lambda which, span: dict.fromkeys(places, span), lambda before, after: op, alike=True)


def _sliding(op: Any, window: Window, macs: int = 0) -> ColumnStep:
    def reads(i: int, span: Span) -> Mapping[int, Span]:
        reach = (window.kernel[i] - 1) * window.dilations[i] + 1
        stride, before = window.strides[i], window.pads[i]
        return {0: (span[0] * stride - before, (span[1] - 1) * stride - before + reach)}

    def made(left: int, right: int) -> Op:
        pads = {"pads": (window.pads[0], left, window.pads[2], right)}
        found: Op = replace(op, **pads, **({"auto_pad": "NOTSET"} if hasattr(op, "auto_pad") else {}))
        return found

    return ColumnStep(USUAL, reads, made, macs=macs)


def _of_all(node: Node) -> ColumnStep:
    x = node.inputs[0]
    assert x is not None
    sizes = [static(x.type.shape[axis]) for axis in USUAL]
    return ColumnStep(USUAL, lambda which, span: {0: (0, sizes[which])}, lambda before, after: node.op)


def _macs(node: Node) -> int:
    """Of a convolution."""
    weights = node.inputs[1]
    assert weights is not None
    per_element = 1
    for size in weights.type.shape[1:]:
        per_element *= static(size)
    out = [static(size) for size in node.output.type.shape]
    return out[0] * out[1] * out[2] * per_element
