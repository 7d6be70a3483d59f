"""What a graph shows of the elements that an input may have: indices lie inside of what they choose from, masks are 0
and 1, and what a branch is chosen by is one of the numbers that it is compared with.

Invariant: a range is never empty, and follows from the graph and the sizes alone.
"""

from __future__ import annotations

from math import prod

import numpy as np

from ..base.records import dataclass
from ..graph.ir import Node, Value
from .sizes import Sizes, of_dim

_LOOKS_THROUGH = {
    "Cast",
    "Identity",
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Slice",
    "Expand",
    "Clip",
    "Gather",
    "Concat",
}
# Between an input and an index: numbers of rows with negative ones from the end, or places counted along a mask.
_COUNTS_WITH = {"Add", "CumSum", "Max", "Min", "Mul", "ReduceSum", "Sub", "Where"}
_COMPARES = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}
_FEW = 16  # elements of a constant that is one number
_FAR = 100.0  # scores are moved by at least that where a mask hides them


@dataclass(frozen=True)
class Range:
    """Of integers; `high` is not in it."""

    low: int
    high: int
    total: int | None = None  # what all elements together come to, at most


MASK = Range(0, 2)
ONES = Range(1, 2)


def index_range(value: Value, sizes: Sizes) -> Range | None:
    """Where the value chooses among rows; None where it is not an index."""
    return _index_range(value, sizes, set())


def _index_range(value: Value, sizes: Sizes, seen: set[Value]) -> Range | None:
    found: list[Range] = []
    seen.add(value)
    for node, position in value.uses:
        made = _indexed(node, position, sizes)
        through = made is None and bool(node.outputs) and node.outputs[0] is not None and node.output not in seen
        if through and _looks_through(node, position):
            made = _index_range(node.output, sizes, seen)
        elif through and node.op.name in _COUNTS_WITH and node.output.type.dtype.is_integer:
            after = _index_range(node.output, sizes, seen)
            made = None if after is None else _before(node, position, after, sizes)
        if made is not None:
            found.append(made)
    if not found:
        return None
    low, high = max(each.low for each in found), min(each.high for each in found)
    total = min((each.total for each in found if each.total is not None), default=None)
    return Range(low, high, total) if low < high else Range(low, low + 1, total)


def _looks_through(node: Node, position: int) -> bool:
    return node.op.name in _LOOKS_THROUGH and (position == 0 or node.op.name == "Concat")


def _before(node: Node, position: int, after: Range, sizes: Sizes) -> Range:
    """What an operand may be where the result must lie in a range."""
    other = node.inputs[1 - position] if len(node.inputs) == 2 and position < 2 else None
    known = _numbers(other)
    if known is not None and node.op.name in ("Add", "Sub"):
        least, most = int(known.min()), int(known.max())
        if node.op.name == "Add":
            found = Range(after.low - least, after.high - most)
        elif position == 0:
            found = Range(after.low + most, after.high + least)
        else:
            found = Range(most - after.high + 1, least - after.low + 1)
        return found if found.low < found.high else Range(found.low, found.low + 1)
    if node.op.name not in ("ReduceSum", "CumSum"):
        return MASK
    total = after.high - 1
    if _summed(node, sizes) > total:  # as many elements that are 1 as what reads the sum has room for
        return Range(0, 2, max(total, 0))
    return ONES if after.low > 0 else MASK  # a sum of a mask that may not be 0 is that of all tokens there are


def _summed(node: Node, sizes: Sizes) -> int:
    """How many elements one sum is of."""
    shape = shape_at(node.inputs[0], sizes) if node.inputs[0] else ()
    axes = _numbers(node.inputs[1]) if len(node.inputs) > 1 else None
    known = axes is not None and all(-len(shape) <= int(axis) < len(shape) for axis in axes.flat)
    return prod(shape[int(axis)] for axis in axes.flat) if known and axes is not None else prod(shape)


def _numbers(value: Value | None) -> np.ndarray | None:
    """The elements, where they are known integers."""
    known = None if value is None else value.fact.value
    if known is None or known.size == 0 or not all(isinstance(each, int | np.integer) for each in known.flat):
        return None
    return known


def _indexed(node: Node, position: int, sizes: Sizes) -> Range | None:
    table = node.inputs[0] if node.inputs else None
    name = node.op.name
    if table is None:
        return None
    shape = [of_dim(dim, sizes) for dim in table.type.shape]
    if name in ("Gather", "GatherElements", "ScatterElements", "Scatter") and position == 1 and shape:
        return _rows(shape[getattr(node.op, "axis", 0)])
    if name in ("GatherND", "ScatterND") and position == 1 and shape:
        skipped = int(getattr(node.op, "batch_dims", 0))
        return _rows(min(shape[skipped:], default=1))
    if name == "TensorScatter" and position == 2 and node.inputs[1] is not None:
        axis = getattr(node.op, "axis", 0)
        return _rows(shape[axis] - of_dim(node.inputs[1].type.shape[axis], sizes) + 1)
    if name == "TopK" and position == 1 and shape:
        return Range(1, max(shape[getattr(node.op, "axis", -1)], 1) + 1)
    if name == "SlotPosition" and position == 0:
        return Range(0, 1)  # the first element is there in every sequence that is not empty
    if name == "Loop" and position == 0:
        trip = node.regions[0].inputs[0].fact.value
        return None if trip is None else _rows(of_dim(trip.item(), sizes) + 2)
    if name == "OneHot" and position == 0:
        depth = _numbers(node.inputs[1])
        return None if depth is None else _rows(int(depth.reshape(-1)[0]))
    return _size(node, position, sizes)


def _size(node: Node, position: int, sizes: Sizes) -> Range | None:
    """Of an axis, or of a size of the result: what keeps that within the bounds that the model was read with."""
    name, operand = node.op.name, node.inputs[0]
    if position == 1 and (name.startswith("Reduce") or name == "Unsqueeze"):
        return _rows(max(operand.type.rank if operand else 0, node.output.type.rank))  # an axis
    if name == "Range" and position == 1:
        start, step = _numbers(operand), _numbers(node.inputs[2])
        (dim,) = node.output.type.shape
        if start is None or step is None or (int(start.item()), int(step.item())) != (0, 1):
            return None
        return Range(dim, dim + 1) if isinstance(dim, int) else _rows(of_dim(dim, sizes) + 1)
    if node.op.name not in ("ConstantOfShape", "Expand", "Tile") or node.output.type.is_static:
        return None
    most = [of_dim(dim, sizes) for dim in node.output.type.shape]
    if name == "ConstantOfShape":
        return _rows(min(most) + 1) if position == 0 else None
    if name == "Tile" and operand is not None:
        before = [max(of_dim(dim, sizes), 1) for dim in operand.type.shape]
        most = [after // size for after, size in zip(most, before, strict=True)]
    return Range(1, max(min(most), 1) + 1) if position == 1 else None


def _rows(count: int) -> Range:
    return Range(0, max(count, 1))


def is_mask(value: Value) -> bool:
    """Is it made a bool, or taken from 1, or compared with 0 and 1 only, on every way?"""
    ways = [way for way in _ways(value, set()) if way[0].op.name not in ("Shape", "Size")]
    return bool(ways) and all(_masks(value, node, position) for node, position in ways)


def _ways(value: Value, seen: set[Value]) -> list[tuple[Node, int]]:
    """What reads the value, through what only moves or converts its elements."""
    seen.add(value)
    found: list[tuple[Node, int]] = []
    for node, position in value.uses:
        moved = _looks_through(node, position) and node.output not in seen
        if moved and node.output.type.dtype.kind != "bool":
            found += _ways(node.output, seen)
        else:
            found.append((node, position))
    return found


def _masks(value: Value, node: Node, position: int) -> bool:
    name = node.op.name
    if name == "Cast":
        return node.output.type.dtype.kind == "bool"
    other = node.inputs[1 - position] if len(node.inputs) == 2 else None
    if name in _COMPARES and value.type.dtype.is_integer:
        known = _numbers(other)
        return known is not None and set(known.flat) <= {0, 1}
    if name == "Sub" and position == 1:
        return _is_one(other) and (value.type.dtype.is_integer or _moves_far(node.output))
    return False


def _is_one(value: Value | None) -> bool:
    constant = None if value is None else value.constant
    if constant is None or prod(constant.type.static_shape) > _FEW:
        return False
    return bool((constant.array == 1).all())


def _moves_far(value: Value) -> bool:
    """Is it multiplied with a number that hides scores?"""
    for node, _ in value.uses:
        if node.op.name in _LOOKS_THROUGH and _moves_far(node.output):
            return True
        factors = [each.constant for each in node.present_inputs if each.constant is not None and each is not value]
        if node.op.name == "Mul" and any(
            0 < prod(each.type.static_shape) <= _FEW and bool((np.abs(each.array) >= _FAR).all()) for each in factors
        ):
            return True
    return False


def compared_with(value: Value) -> tuple[int, ...]:
    """The integers that the graph asks whether it is equal to."""
    found: dict[int, None] = {}
    for node, position in _ways(value, set()):
        known = _numbers(node.inputs[1 - position]) if node.op.name == "Equal" else None
        if known is not None:
            found |= dict.fromkeys(int(each) for each in known.flat)
    return tuple(found)


def shape_at(value: Value, sizes: Sizes) -> tuple[int, ...]:
    return tuple(of_dim(dim, sizes) for dim in value.type.shape)
