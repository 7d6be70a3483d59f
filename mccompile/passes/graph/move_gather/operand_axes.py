"""Along which axes of its operands a node reads element i, for element i of its results."""

from __future__ import annotations

from collections.abc import Callable

from ....base.dims import product
from ....graph.ir import Node
from ....ops.api import normal_axes, normal_axis
from ....ops.choose import Clip
from ....ops.concat import Concat, Split
from ....ops.gather import Gather
from ....ops.identity import Identity
from ....ops.matmul import Gemm, MatMul, MatMulInteger
from ....ops.normalization import LayerNormalization, RMSNormalization
from ....ops.quantize import Linear
from ....ops.reduce import Reduction
from ....ops.reshape import SameElements, Squeeze, Unsqueeze
from ....ops.rules.elementwise import Elementwise
from ....ops.slice import Slice
from ....ops.softmax import AlongAxis
from ....ops.transpose import Transpose

Axes = dict[int, int]  # operand: axis; operands that are not here are read whole
Rule = Callable[[Node, int], Axes | None]
PRODUCTS = (MatMul, MatMulInteger, Gemm)


def operand_axes(node: Node, axis: int) -> Axes | None:
    """None where an element depends on others of that axis, or on which one it is."""
    rule = next((_RULES[cls] for cls in type(node.op).__mro__ if cls in _RULES), None)
    return None if rule is None or node.regions else rule(node, axis)


def _broadcast(node: Node, axis: int, operands: range | None = None) -> Axes | None:
    result, found = node.output.type, Axes()
    for place in range(len(node.inputs)) if operands is None else operands:
        value = node.inputs[place]
        own = -1 if value is None else axis - (result.rank - value.type.rank)
        if value is None or own < 0:
            continue
        if value.type.shape[own] == result.shape[axis]:
            found[place] = own
        elif value.type.shape[own] != 1:
            return None
    return found


def _same(node: Node, axis: int) -> Axes | None:
    return {0: axis}


def _quantized(node: Node, axis: int) -> Axes | None:
    op, scale = node.op, node.site().type(1)
    assert isinstance(op, Linear)
    if scale.count == 1:
        return {0: axis}
    along = op.along(scale.shape, node.output.type.shape) if scale.rank == 1 else axis
    return {0: axis} if along != axis else None


def _along(node: Node, axis: int) -> Axes | None:
    assert isinstance(node.op, AlongAxis)
    return {0: axis} if axis not in node.op.axes(node.output.type.rank) else None


def _normalized(node: Node, axis: int) -> Axes | None:
    op, rank = node.op, node.output.type.rank
    assert isinstance(op, LayerNormalization | RMSNormalization)
    first = normal_axis(op.axis, rank)
    varies = any(value is not None and value.type.rank > rank - first for value in node.inputs[1:])
    return {0: axis} if axis < first and not varies else None


def _reduced(node: Node, axis: int) -> Axes | None:
    op, site = node.op, node.site()
    assert isinstance(op, Reduction)
    if not site.is_known(1):
        return None
    gone = op.axes(site)
    if op.keepdims:
        return {0: axis} if axis not in gone else None
    return {0: [place for place in range(site.type(0).rank) if place not in gone][axis]}


def _product(node: Node, axis: int) -> Axes | None:
    """Columns only of weights, which are selected when compiling."""
    a, b = (node.site().type(place).rank for place in (0, 1))
    rank = node.output.type.rank
    if a < 2 or b < 2 or any(value is not None and value.type.count != 1 for value in node.inputs[2:]):
        return None
    if axis == rank - 2:
        return {0: a - 2}
    if axis == rank - 1:
        return {1: b - 1} if node.inputs[1] is not None and node.inputs[1].constant is not None else None
    return _broadcast(node, axis, range(2))


def _gemm(node: Node, axis: int) -> Axes | None:
    op, c = node.op, _broadcast(node, axis, range(2, len(node.inputs)))
    assert isinstance(op, Gemm)
    if c is None:
        return None
    if axis == 0:
        return {0: 1 if op.transA else 0, **c}
    weights = node.inputs[1]
    return {1: 0 if op.transB else 1, **c} if weights is not None and weights.constant is not None else None


def _transposed(node: Node, axis: int) -> Axes | None:
    assert isinstance(node.op, Transpose)
    return {0: node.op.order(node.output.type.rank)[axis]}


def _reshaped(node: Node, axis: int) -> Axes | None:
    """Where the axis stays one."""
    before, after = node.site().shape(0), node.output.type.shape
    if 0 in after or sum(not isinstance(dim, int) for place, dim in enumerate(after) if place != axis) > 1:
        return None
    for place, size in enumerate(before):
        outer = product(before[:place]) == product(after[:axis])
        if size == after[axis] and outer and product(before[place + 1 :]) == product(after[axis + 1 :]):
            return {0: place}
    return None


def _with_axes_of_one(node: Node, axis: int) -> Axes | None:
    site = node.site()
    if not site.has(1) or not site.is_known(1):
        return None
    if isinstance(node.op, Unsqueeze):
        added = normal_axes(site.known_ints(1, "the axes"), node.output.type.rank)
        return {0: axis - sum(place < axis for place in added)} if axis not in added else None
    gone = normal_axes(site.known_ints(1, "the axes"), site.type(0).rank)
    return {0: [place for place in range(site.type(0).rank) if place not in gone][axis]}


def _joined(node: Node, axis: int) -> Axes | None:
    assert isinstance(node.op, Concat)
    return (
        None
        if normal_axis(node.op.axis, node.output.type.rank) == axis
        else dict.fromkeys(range(len(node.inputs)), axis)
    )


def _split(node: Node, axis: int) -> Axes | None:
    assert isinstance(node.op, Split)
    return None if normal_axis(node.op.axis, node.output.type.rank) == axis else {0: axis}


def _cut(node: Node, axis: int) -> Axes | None:
    assert isinstance(node.op, Slice)
    site = node.site()
    known = site.is_known(1, 2, 3, 4)
    return {0: axis} if known and axis not in [place for place, *_ in node.op.cuts(site)] else None


def _gathered(node: Node, axis: int) -> Axes | None:
    assert isinstance(node.op, Gather)
    site = node.site()
    first, places = normal_axis(node.op.axis, site.type(0).rank), site.type(1).rank
    if axis < first:
        return {0: axis}
    return {1: axis - first} if axis < first + places else {0: axis - places + 1}


_RULES: dict[type, Rule] = {
    Elementwise: _broadcast,
    Clip: _same,
    Identity: _same,
    Linear: _quantized,
    AlongAxis: _along,
    LayerNormalization: _normalized,
    RMSNormalization: _normalized,
    Reduction: _reduced,
    MatMul: _product,
    MatMulInteger: _product,
    Gemm: _gemm,
    Transpose: _transposed,
    SameElements: _reshaped,
    Squeeze: _with_axes_of_one,
    Unsqueeze: _with_axes_of_one,
    Concat: _joined,
    Split: _split,
    Slice: _cut,
    Gather: _gathered,
}
