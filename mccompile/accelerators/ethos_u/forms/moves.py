"""Operators that only move int8 numbers: views, parts, and more of the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....graph.ir import Node
from .families import Movement, movement
from .quantities import LAST, attribute, integers, sizes
from .writing import Writing


@movement("Reshape", "Squeeze", "Unsqueeze", "Flatten")
class Reshape(Movement):
    @staticmethod
    def takes(node: Node) -> str:
        return ""

    @staticmethod
    def write(writing: Writing, node: Node) -> str:
        value, result = node.inputs[0], node.output
        assert value is not None
        given = writing.ordered(value, range(value.type.rank))
        made = writing.made(result, range(result.type.rank))
        writing.net.operator("RESHAPE", [given, writing.net.ints(sizes(result))], made, "ReshapeOptions")
        return ""


@movement("Concat")
class Concat(Movement):
    @staticmethod
    def takes(node: Node) -> str:
        return ""

    @staticmethod
    def write(writing: Writing, node: Node) -> str:
        values, rank = list(node.present_inputs), node.output.type.rank
        for value in values:
            if value.constant is None:
                writing.made(value)
        order = next((writing.orders[value] for value in values if value.constant is None), tuple(range(rank)))
        if any(value.constant is not None for value in values):
            return "an operand is a constant"
        given = [writing.ordered(value, order) for value in values]
        axis = order.index(int(attribute(node, "axis")) % rank)
        made = writing.made(node.output, order)
        writing.net.operator("CONCATENATION", given, made, "ConcatenationOptions", Axis=axis)
        return ""


@movement("Split")
class Split(Movement):
    @staticmethod
    def takes(node: Node) -> str:
        return "" if len(list(node.present_outputs)) == len(node.outputs) else "a part of it is not used"

    @staticmethod
    def write(writing: Writing, node: Node) -> str:
        value = node.inputs[0]
        assert value is not None
        given, order, axis = writing.made(value), writing.orders[value], int(attribute(node, "axis", 0))
        parts = [sizes(part)[axis] for part in node.present_outputs]
        made = [writing.made(part, order) for part in node.present_outputs]
        place = writing.net.tensor((), 1, 0, np.array(order.index(axis % value.type.rank), np.int32))
        ins = [given, writing.net.ints(parts), place]
        writing.net.operator("SPLIT_V", ins, made, "SplitVOptions", NumSplits=len(parts))
        return ""


def _cut(node: Node) -> tuple[list[int], list[int]] | None:
    """Where a part begins, by axis, and the steps of axes; nothing where no constants say so."""
    numbers = [integers(value) if value is not None else None for value in node.inputs[1:]]
    if len(numbers) < 2 or numbers[0] is None or node.inputs[0] is None:
        return None
    shape = sizes(node.inputs[0])
    axes = numbers[2] if len(numbers) > 2 and numbers[2] is not None else list(range(len(numbers[0])))
    steps = numbers[3] if len(numbers) > 3 and numbers[3] is not None else [1] * len(axes)
    begin, step = [0] * len(shape), [1] * len(shape)
    for axis, start, each in zip(axes, numbers[0], steps, strict=True):
        size = shape[axis]
        begin[axis] = min(max(start + size if start < 0 else start, 0), size)
        step[axis % len(shape)] = each
    return begin, step


@movement("Slice")
class Slice(Movement):
    @staticmethod
    def takes(node: Node) -> str:
        found = _cut(node)
        if found is None or any(step != 1 for step in found[1]) or 0 in sizes(node.output):
            return "only parts without gaps, at places that are constant"
        return ""

    @staticmethod
    def write(writing: Writing, node: Node) -> str:
        value, found = node.inputs[0], _cut(node)
        assert value is not None and found is not None
        given, order, shape = writing.made(value), writing.orders[value], sizes(node.output)
        begin, size = ([each[axis] for axis in order] for each in (found[0], shape))
        made = writing.made(node.output, order)
        ins = [given, writing.net.ints(begin), writing.net.ints(size)]
        writing.net.operator("SLICE", ins, made, "SliceOptions")
        return ""


@movement("Pad")
class Pad(Movement):
    @staticmethod
    def takes(node: Node) -> str:
        pads = integers(node.inputs[1]) if len(node.inputs) > 1 else None
        if attribute(node, "mode") != "constant" or pads is None or min(pads) < 0:
            return "only constant padding around it"
        if node.output.type.rank != 4 or len(pads) != 8 or any(pads[axis] for axis in (0, 4)):
            return "only pictures are padded"
        return ""

    @staticmethod
    def write(writing: Writing, node: Node) -> str:
        value, pads = node.inputs[0], integers(node.inputs[1])
        assert value is not None and pads is not None
        fill = integers(node.inputs[2]) if len(node.inputs) > 2 and node.inputs[2] is not None else [0]
        given = writing.ordered(value, LAST)
        if fill is None or value not in writing.scales or fill[0] != int(np.asarray(writing.scales[value][1])):
            return "it is padded with another number than its zero"
        around = [(pads[axis], pads[axis + 4]) for axis in LAST]
        made = writing.made(node.output, LAST)
        writing.net.operator("PAD", [given, writing.net.ints(around)], made, "PadOptions")
        return ""


_REPEATS = ("asymmetric", "floor"), ("half_pixel", "round_prefer_floor"), ("half_pixel", "round_prefer_ceil")


@movement("Resize")
class Resize(Movement):
    @staticmethod
    def takes(node: Node) -> str:
        op: Any = node.op
        assert node.inputs[0] is not None
        given, made = sizes(node.inputs[0]), sizes(node.output)
        how = op.coordinate_transformation_mode, op.nearest_mode
        if len(given) != 4 or op.mode != "nearest" or given[:2] != made[:2] or how not in _REPEATS:
            return "only pictures whose pixels are repeated"
        whole = all(large % small == 0 for small, large in zip(given[2:], made[2:], strict=True))
        return "" if whole else "only pictures whose pixels are repeated a whole number of times"

    @staticmethod
    def write(writing: Writing, node: Node) -> str:
        value = node.inputs[0]
        assert value is not None
        given, made = writing.ordered(value, LAST), writing.made(node.output, LAST)
        ins, options = [given, writing.net.ints(sizes(node.output)[2:])], "ResizeNearestNeighborOptions"
        writing.net.operator("RESIZE_NEAREST_NEIGHBOR", ins, made, options)
        return ""
