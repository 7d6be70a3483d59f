"""Maps nodes to steps of channels: one line per operator that passes channels on; any other operator reads all
channels."""

from __future__ import annotations

from ....base.dims import product
from ....graph.ir import Node, Value
from ....ops.api import normal_axis
from ....ops.choose import Clip
from ....ops.concat import Concat
from ....ops.fixed_point import Lookup, SumPool
from ....ops.pad import Pad
from ....ops.pool import MaxPool
from ....ops.reshape import SameElements
from ....ops.rules.elementwise import Elementwise
from ....ops.transpose import Transpose
from .channel_moves import Across, Calculated, Joined, Moved, Padded, Pooled, Reshaped, Table, tap_ranges
from .channel_sums import sums
from .channels import Axes, Coupled, Step


def step_of(node: Node, axes: Axes) -> Step:
    """`axes`: along which the channels of values lie, of those that may lose some."""
    if node.regions or len(list(node.present_outputs)) != 1 or node.outputs[0] is None:
        return Step(node)
    found = sums(node, axes)
    if found is None and any(value in axes for value in node.present_inputs):
        found = _elementwise(node, axes) if isinstance(node.op, Elementwise) else _other(node, axes)
    return found or Step(node)


def _elementwise(node: Node, axes: Axes) -> Step | None:
    rank = node.output.type.rank
    found = {v: rank - v.type.rank + axes[v] for v in node.present_inputs if v in axes and v.type.shape[axes[v]] != 1}
    if len(set(found.values())) != 1:
        return None
    axis = next(iter(found.values()))
    for value in node.present_inputs:
        place = axis - (rank - value.type.rank)
        if value.constant is None and value not in found and place >= 0 and value.type.shape[place] != 1:
            return None
    return Calculated(node, axis, list(found))


def _other(node: Node, axes: Axes) -> Step | None:
    """Operators that are not elementwise."""
    op, x = node.op, node.inputs[0]
    if isinstance(op, Concat):
        return _concat(node, op, axes)
    if x is None or x not in axes:
        return None
    axis, others = axes[x], [value for value in node.inputs[1:] if value is not None]
    if any(value in axes for value in others):
        return None
    if isinstance(op, Lookup):
        return Table(node, axis, [x])
    if isinstance(op, Clip):
        return Coupled(node, axis, [x])
    if isinstance(op, Transpose):
        return Moved(node, op.order(x.type.rank).index(axis), [x])
    if isinstance(op, SameElements):
        return _reshape(node, x, axis)
    if isinstance(op, Pad) and node.site().is_known(1, 3):
        before, after = op.spans(node.site())
        return Padded(node, axis, [x]) if before[axis] == after[axis] == 0 else None
    if isinstance(op, SumPool | MaxPool) and axis == 1:
        window = op.window(node.site())[0]
        return Pooled(node, 1, x, tap_ranges(window, x.type.shape[2:], node.output.type.shape[2:]))
    return None


def _reshape(node: Node, x: Value, axis: int) -> Step | None:
    """Where each channel becomes so many elements of one axis."""
    before, after = x.type.shape, node.output.type.shape
    named = len(node.inputs) > 1 and node.op.name == "Reshape"
    if 0 in after or (named and sum(not isinstance(dim, int) for dim in after) > 1):
        return None
    behind = [product(before[axis + 1 : end]) for end in range(axis + 1, len(before) + 1)]
    for place, size in enumerate(after):
        for times in behind:
            together = before[axis] * times
            if isinstance(times, int) and size == together and product(after[:place]) == product(before[:axis]):
                return Reshaped(node, place, [x], times) if before[axis] != 1 else None
    return None


def _concat(node: Node, op: Concat, axes: Axes) -> Step | None:
    axis = normal_axis(op.axis, node.output.type.rank)
    parts = list(node.present_inputs)
    along = {axes[value] for value in parts if value in axes}
    if along == {axis}:
        return Joined(node, axis) if all(isinstance(value.type.shape[axis], int) for value in parts) else None
    return Across(node, along.pop(), parts) if len(along) == 1 and all(value in axes for value in parts) else None
