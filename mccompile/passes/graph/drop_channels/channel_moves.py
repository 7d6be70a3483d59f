"""Operators that pass channels on, as steps of drop_channels: elementwise ones, tables, moves, pools and
concatenations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....base.dims import Dim, static
from ....expr.evaluate import evaluate
from ....expr.ir import operand
from ....graph.ir import Node, Value
from ....ops.fixed_point import SumPool
from ....ops.rules.elementwise import Elementwise
from ....ops.rules.window import Window
from .channels import Coupled, Cutting, Known, Masks, Step


class Calculated(Coupled):
    """An elementwise operator."""

    def place(self, value: Value) -> int:
        """The axis of an operand along which the channels lie, if it has them; it may be negative."""
        assert self.axis is not None
        return self.axis - (self.node.output.type.rank - value.type.rank)

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        types = [value.type for value in (*self.node.present_inputs, self.node.output)]
        if any(type.dtype.is_float for type in types):
            return None
        where, arrays = np.ones(1, bool), list[np.ndarray | None]()
        for value in self.node.inputs:
            if value is None:
                arrays.append(None)
            elif value.constant is not None:
                place = self.place(value)
                if value.type.count != (value.type.shape[place] if place >= 0 else 1):
                    return None  # it is not the same everywhere
                arrays.append(value.constant.array.reshape(-1))
            elif value in known:
                where = where & known[value].where
                arrays.append(known[value].numbers)
            else:
                return None
        return Known(where, _evaluated(self.node, arrays, len(where))) if np.any(where) else None

    def cut(self, cutting: Cutting, keep: Masks) -> None:
        mask = keep[self.node.output]
        for position, value in enumerate(self.node.inputs):
            if value is None or value.constant is None:
                continue
            place = self.place(value)
            if place >= 0 and value.type.shape[place] == len(mask):
                cutting.put(self.node, position, np.compress(mask, value.constant.array, place))


def _evaluated(node: Node, arrays: Sequence[np.ndarray | None], count: int) -> np.ndarray:
    assert isinstance(node.op, Elementwise)
    found = node.op.evaluate(arrays)
    if found is None:
        present = [array for array in arrays if array is not None]
        types = [value.type.dtype for value in node.present_inputs]
        found = evaluate(node.op.element([operand(n, d) for n, d in enumerate(types)]), present, (count,))
    return np.broadcast_to(found, (count,))


class Table(Coupled):
    """Lookup."""

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        x, table = known.get(self.operands[0]), self.node.inputs[1]
        if x is None or table is None or table.constant is None:
            return None
        return Known(x.where, table.constant.array.reshape(-1)[x.numbers.view(np.uint8)])


class Moved(Coupled):
    """An operator that only moves elements; numbers stay."""

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        x = known.get(self.operands[0])
        return x and Known(*(np.repeat(array, self.times) for array in (x.where, x.numbers)))


class Reshaped(Moved):
    def cut(self, cutting: Cutting, keep: Masks) -> None:
        if len(self.node.inputs) > 1 and self.node.op.name == "Reshape":
            sizes = [dim if isinstance(dim, int) else -1 for dim in self.node.output.type.shape]
            sizes[self.axis or 0] = int(keep[self.node.output].sum())
            cutting.put(self.node, 1, np.array(sizes, np.int64))


class Pooled(Coupled):
    """`ranges`: which taps of a window lie inside the picture, along each axis."""

    def __init__(self, node: Node, axis: int, x: Value, ranges: Sequence[set[tuple[int, int]]]) -> None:
        super().__init__(node, axis, [x])
        self.ranges = ranges

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        x = known.get(self.operands[0])
        if x is None or not isinstance(self.node.op, SumPool):
            filled = all(first < last for ranges in self.ranges for first, last in ranges)
            return x if filled else None
        if all(len(ranges) == 1 for ranges in self.ranges):
            count = np.prod([last - first for ((first, last),) in self.ranges])
            return Known(x.where, (x.numbers.astype(np.int64) * count).astype(np.int32))
        return Known(x.where & (x.numbers == 0), np.zeros(len(x.where), np.int32))


class Padded(Coupled):
    """What pads may be another number than a channel is."""

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        x = known.get(self.operands[0])
        if x is None or vars(self.node.op)["mode"] != "constant":
            return x
        number = self.node.inputs[2] if len(self.node.inputs) > 2 else None
        if number is None:
            return Known(x.where & (x.numbers == 0), x.numbers)
        if number.constant is None:
            return None
        return Known(x.where & (x.numbers == number.constant.array.reshape(-1)[0]), x.numbers)


class Joined(Step):
    """Channels of all operands, one operand behind the other; those of operands without channels are all kept."""

    def __init__(self, node: Node, axis: int) -> None:
        super().__init__(node)
        self.axis = axis

    def parts(self) -> list[tuple[Value, slice]]:
        found, start = [], 0
        for value in self.node.present_inputs:
            size = static(value.type.shape[self.axis or 0])
            found.append((value, slice(start, start + size)))
            start += size
        return found

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        parts = self.parts()
        where = np.zeros(parts[-1][1].stop, bool)
        numbers = np.zeros(len(where), self.node.output.type.dtype.numpy)
        for value, place in parts:
            if value in known:
                where[place], numbers[place] = known[value].where, known[value].numbers
        return Known(where, numbers)

    def grow(self, keep: Masks) -> None:
        out = keep[self.node.output]
        for value, place in self.parts():
            if value in keep:
                keep[value] |= out[place]
            out[place] |= keep.get(value, np.True_)


class Across(Coupled):
    """Operands joined along another axis."""

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        parts = [known.get(value) for value in self.operands]
        first = parts[0]
        if first is None:
            return None
        where = first.where
        for part in parts[1:]:
            if part is None:
                return None
            where = where & part.where & (part.numbers == first.numbers)
        return Known(where, first.numbers)


def tap_ranges(window: Window, space: Sequence[Dim], out: Sequence[Dim]) -> list[set[tuple[int, int]]]:
    """Along each axis, the first tap of a window that lies inside the picture and the one behind the last, wherever the
    window is; more than there are where sizes are known only at run time."""
    found: list[set[tuple[int, int]]] = []
    rank = len(space)
    for axis, (size, count) in enumerate(zip(space, out, strict=True)):
        taps, step, gap = window.kernel[axis], window.strides[axis], window.dilations[axis]
        before, after = window.pads[axis], window.pads[axis + rank]
        if count == 0:
            found.append({(0, 0)})
        elif isinstance(size, int) and isinstance(count, int):
            starts = [place * step - before for place in range(count)]
            firsts = [min(max(0, -(start // gap)), taps) for start in starts]
            lasts = [min(max(0, (size - 1 - start) // gap + 1), taps) for start in starts]
            found.append({(first, max(first, last)) for first, last in zip(firsts, lasts, strict=True)})
        elif before or after:
            found.append({(first, last) for first in range(taps + 1) for last in range(first, taps + 1)})
        else:
            found.append({(0, taps)})
    return found
