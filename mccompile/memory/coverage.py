"""Which bytes of a block are in use, as that changes over time.

The edges of its parts cut the bytes of a block into cells. Invariant: a cell is in use while any part covers it, and
only changes are told, so the work follows the cells that parts cover, not the number of moments times that of parts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

Rectangle = tuple[int, int, int, int]  # start, end, low, high


class Change(NamedTuple):
    time: int
    come: list[int]  # cells that are in use from now on
    gone: list[int]


class Coverage:
    def __init__(self, rectangles: Sequence[Rectangle]) -> None:
        self.edges = sorted({edge for _, _, low, high in rectangles for edge in (low, high)})  # of the cells
        self.covering = [0] * len(self.edges)  # parts over each cell, after the last change that was told
        number = {edge: cell for cell, edge in enumerate(self.edges)}
        self._events = sorted(
            event
            for start, end, low, high in rectangles
            for event in ((start, 1, number[low], number[high]), (end, -1, number[low], number[high]))
        )

    def changes(self) -> Iterator[Change]:
        """In the order of time; what a part leaves to another one that starts in the same moment stays in use."""
        covering = self.covering
        for time, events in groupby(self._events, lambda event: event[0]):
            come: list[int] = []
            gone: list[int] = []
            for _, step, low, high in sorted(events, key=lambda event: -event[1]):  # starts before ends
                for cell in range(low, high):
                    covering[cell] += step
                    if step > 0 and covering[cell] == 1:
                        come.append(cell)
                    elif covering[cell] == 0:
                        gone.append(cell)
            yield Change(time, come, gone)
