"""Sums of gradients that are zero but for a part: what was cut out of one value is put side by side, not padded and
added up. So the steps of an unrolled recurrent layer share one tensor, where each had one of the whole sequence."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from ...base.records import dataclass
from ...graph.ir import Value
from ...ops.pad import Pad
from ...ops.rules.backward import Writer, static_shape


@dataclass(frozen=True)
class _Part:
    """The elements [begin, end) of a gradient along an axis; all others are zero."""

    padded: Value
    elements: Value
    axis: int
    begin: int
    end: int


def summed(writer: Writer, gradients: Sequence[Value]) -> Value:
    found, by_axis = list[Value](), dict[int, list[_Part]]()
    for gradient in gradients:
        part = _part(gradient)
        if part is None:
            found.append(gradient)
        else:
            by_axis.setdefault(part.axis, []).append(part)
    for parts in by_axis.values():
        found += [_joined(writer, row) for row in _rows(parts)]
    return reduce(lambda a, b: writer.op("Add", a, b), found)


def _part(gradient: Value) -> _Part | None:
    """None where it is not padded with zeros along one axis."""
    node = gradient.producer
    if node is None or not isinstance(node.op, Pad) or node.op.mode != "constant" or len(node.inputs) != 2:
        return None
    elements = node.inputs[0]
    assert elements is not None
    before, after = node.op.pads(node.site())
    axes = [axis for axis, pads in enumerate(zip(before, after, strict=True)) if any(pads)]
    if len(axes) != 1 or min(*before, *after) < 0:
        return None
    (axis,) = axes
    return _Part(gradient, elements, axis, before[axis], before[axis] + static_shape(elements)[axis])


def _rows(parts: Sequence[_Part]) -> list[list[_Part]]:
    """As few rows as possible, in each of which no two parts overlap."""
    rows = list[list[_Part]]()
    for part in sorted(parts, key=lambda part: part.begin):
        row = next((row for row in rows if row[-1].end <= part.begin), None)
        if row is None:
            rows.append(row := [])
        row.append(part)
    return rows


def _joined(writer: Writer, row: Sequence[_Part]) -> Value:
    """Each with the zeros between it and the next one."""
    if len(row) == 1:
        return row[0].padded
    axis, size = row[0].axis, static_shape(row[0].padded)[row[0].axis]
    begins = [0, *(part.end for part in row[:-1])]
    ends = [*(part.end for part in row[:-1]), size]
    pieces = [
        writer.pad_axis(part.elements, axis, part.begin - begin, end - part.end)
        for part, begin, end in zip(row, begins, ends, strict=True)
    ]
    return writer.op("Concat", *pieces, axis=axis)
