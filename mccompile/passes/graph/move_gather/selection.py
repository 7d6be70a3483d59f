"""The few elements of an axis that a Gather or a Slice takes, whatever the tensor."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ....base.dims import upper
from ....base.records import dataclass
from ....graph.ir import Node
from ....ops.api import normal_axis
from ....ops.gather import Gather
from ....ops.slice import Slice

LEAST = 2  # times as many elements as are taken; fewer are hardly worth a copy


@dataclass(frozen=True)
class Selection:
    """Indices count from the axis' end where they are negative."""

    axis: int
    places: tuple[int, ...] = ()  # of a Gather
    bounds: tuple[int, int, int] | None = None  # start, end and step of a Slice

    def along(self, axis: int) -> Selection:
        return replace(self, axis=axis)

    def node(self) -> tuple[Gather | Slice, list[np.ndarray]]:
        """The operator, and its operands behind the tensor."""
        if self.bounds is None:
            return Gather(self.axis), [np.array(self.places, np.int64)]
        start, end, step = self.bounds
        return Slice(), [np.array([number], np.int64) for number in (start, end, self.axis, step)]

    def of(self, array: np.ndarray) -> np.ndarray:
        if self.bounds is None:
            return np.take(array, self.places, self.axis)
        return array[(slice(None),) * self.axis + (slice(*self.bounds),)]


def selection(node: Node) -> Selection | None:
    """What a node takes of its first operand, where that is a small part."""
    found = _gathered(node) if isinstance(node.op, Gather) else _cut(node) if isinstance(node.op, Slice) else None
    if found is None:
        return None
    taken, count = found
    return taken if LEAST * count <= upper(node.site().shape(0)[taken.axis]) else None


def _gathered(node: Node) -> tuple[Selection, int] | None:
    assert isinstance(node.op, Gather)
    indices = node.inputs[1]
    if indices is None or indices.constant is None or indices.type.rank > 1:
        return None
    places = tuple(indices.constant.array.reshape(-1).tolist())
    return Selection(normal_axis(node.op.axis, node.site().type(0).rank), places), len(places)


def _cut(node: Node) -> tuple[Selection, int] | None:
    assert isinstance(node.op, Slice)
    site = node.site()
    if not all(value is None or value.constant is not None for value in node.inputs[1:]):
        return None
    (axis, _, count, step), *others = node.op.cuts(site)
    if others or not isinstance(count, int) or step < 1:
        return None
    start, end = (site.known_ints(place, "bounds")[0] for place in (1, 2))
    return Selection(axis, bounds=(start, end, step)), count
