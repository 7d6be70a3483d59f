"""Expected costs of parts of a graph with two memories, where steps work in the near one only: in tiles, or, as one
tile, by rows as wide as the tensors. The first and last value of a part are in the far memory, and their rows are
copied."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence

from ....base.column_tiles import ColumnTiles
from ....base.dims import static
from ....graph.ir import Value
from ...api import Memory, TilesCost
from .column_steps import COLUMNS, ROWS
from .conv_global_pool import pooled
from .expected import CHANNEL_BLOCKS, LONGEST, counts, macs_of, narrow
from .regions import CutValue, Region


def expected_copies(ways: Sequence[CutValue], memory: Memory) -> Iterator[TilesCost]:
    """Of parts that are expected to fit; steps of which nothing is known may."""
    most = (memory.recompute - 1) * sum(macs_of(Region(way.nodes)) for way in ways if way.nodes)
    ends = narrow([way.value for way in ways])
    for i, first in enumerate(ways):
        for j in range(i + 1, len(ways)):
            between = ways[i + 1 : j + 1]
            region = Region(tuple(node for way in between for node in way.nodes))
            if not region.is_whole or len(region.nodes) > LONGEST or first.value not in region.lines():
                if j == i + 1:
                    yield TilesCost(ColumnTiles(first.value.name, ways[j].value.name, 1), 0, 0)
                break
            part = _Part(region, first.value, [way.value for way in between[:-1]], memory)
            if first.value in ends and pooled(region) is not None:
                yield from part.in_channels()
            in_tiles = counts(part.columns) if {first.value, ways[j].value} <= ends else []
            yield from part.in_column_tiles([1, *in_tiles], most)


class _Part:
    """All between two values; chains of rows may end at those `between`, which are far then."""

    def __init__(self, region: Region, first: Value, between: Sequence[Value], memory: Memory) -> None:
        self.region, self.first, self.between = region, first, between
        self.near, self.far = memory.near or sys.maxsize, memory.far or sys.maxsize
        self.lines = region.lines()
        self.held = {first: self.lines[first], **region.held(), region.last: 1}
        self.row = {x: x.type.max_bytes // (region.size(x, ROWS) * region.size(x, COLUMNS)) for x in self.held}
        self.columns = region.size(region.last, COLUMNS)

    def in_column_tiles(self, numbers: Sequence[int], most: float) -> Iterator[TilesCost]:
        name, last = self.first.name, self.region.last
        before = macs_of(self.region)
        for count in numbers:
            widths = self.region.widths(count)
            macs = sum(step.macs * width.get(n.output, 0) for width in widths for n, step in self.region.steps.items())
            if macs - before > most:
                return
            both = self.first.type.max_bytes, last.type.max_bytes
            far = self.far - (max(both) if count == 1 else sum(both))  # it may begin a little before what is read
            near = max(self._near(width, far) for width in widths)
            if near <= self.near:
                read = sum(width.get(self.first, 0) for width in widths) * self.row[self.first]
                copied = read * self.region.size(self.first, ROWS) + last.type.max_bytes
                yield TilesCost(ColumnTiles(name, last.name, count), near, macs - before, copied)

    def _near(self, width: Mapping[Value, int], far: int) -> int:
        """The least that a tile takes, cut into chains such that what lies between them is not more than `far`."""
        values = list(self.held)
        rings = [self.held[x] * self.row[x] * width.get(x, 0) for x in values]
        read = [self.lines.get(x, 1) * self.row[x] * width.get(x, 0) for x in values]
        made = [self.row[x] * width.get(x, 0) for x in values]
        whole = [self.region.size(x, ROWS) * each for x, each in zip(values, made, strict=True)]
        best = {0: 0}
        for end in [*sorted(values.index(x) for x in self.between), len(values) - 1]:
            tried = [
                max(least, read[begin] + sum(rings[begin + 1 : end]) + made[end])
                for begin, least in best.items()
                if (whole[begin] if begin else 0) + (whole[end] if end < len(values) - 1 else 0) <= far
            ]
            best[end] = min(tried, default=sys.maxsize)
        return best[len(values) - 1]

    def in_channels(self) -> Iterator[TilesCost]:
        """Of the result of a convolution behind which all is pooled."""
        last = self.region.last
        row = self.row[self.first] * self.region.size(self.first, COLUMNS) * self.lines[self.first]
        channels = static(last.type.shape[1])
        inside = max(self.row[x] * self.region.size(x, COLUMNS) for x in self.held if x is not self.first)
        for count in (count for count in CHANNEL_BLOCKS if channels % count == 0):
            near = row + inside // count + last.type.max_bytes
            if near <= self.near:
                copied = self.first.type.max_bytes * count
                yield TilesCost(ColumnTiles(self.first.name, last.name, count), near, 0, copied)
