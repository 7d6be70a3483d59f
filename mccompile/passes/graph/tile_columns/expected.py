"""Expected memory and recomputation of tiles, for every part of a graph and every number of tiles: line buffers as
wide as a tile, between the first and last value of the part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ....base.column_tiles import ColumnTiles
from ....base.dims import static
from ....graph.ir import Value
from ...api import ALL, Memory, TilesCost
from .bottlenecks import Bottleneck, bottlenecks
from .column_steps import COLUMNS, ROWS
from .conv_global_pool import pooled
from .regions import CutValue, Region

MOST = 32  # tiles
LONGEST = 48  # nodes of a part
BOTTLENECK_ROWS = (1, 2)  # at a time
CHANNEL_BLOCKS = (2, 4, 8)


def expected(ways: Sequence[CutValue], memory: Memory) -> Iterator[TilesCost]:
    """As long as they compute at most so much more."""
    most = (memory.recompute - 1) * sum(macs_of(Region(way.nodes)) for way in ways if way.nodes)
    ends = narrow([way.value for way in ways])
    for i, first in enumerate(ways):
        for j in range(i + 1, len(ways)) if first.value in ends else ():
            between = ways[i + 1 : j + 1]
            region = Region(tuple(node for way in between for node in way.nodes))
            if not region.is_whole or len(region.nodes) > LONGEST:
                break
            if pooled(region) is not None:
                yield from _in_channels(region, first.value, memory)
            elif ways[j].value in ends:
                at = [way.value for way in between[:-1]]
                yield from _of_all_counts(region, first.value, at, memory, most)


def narrow(values: Sequence[Value]) -> set[Value]:
    """Those that are not larger than the ones before and behind."""
    groups = [list(group) for _, group in groupby(values, key=_bytes)]
    sizes = [_bytes(group[0]) for group in groups]
    neighbours = zip([0, *sizes], [*sizes[1:], 0], strict=False)
    return {
        value
        for place, (group, around) in enumerate(zip(groups, neighbours, strict=False))
        if place in (0, len(groups) - 1) or sizes[place] < max(around)
        for value in group
    }


def macs_of(region: Region) -> int:
    return sum(step.macs * region.size(node.output, COLUMNS) for node, step in region.steps.items())


def _of_all_counts(
    region: Region, first: Value, between: Sequence[Value], memory: Memory, most: float
) -> Iterator[TilesCost]:
    before, last = 0 if _is_outside(first, memory) else _bytes(first), _bytes(region.last)
    computed_once, found = macs_of(region), bottlenecks(region)
    ways = [_Inside(region, [], 0), *(_Inside(region, found, rows) for rows in (BOTTLENECK_ROWS if found else ()))]
    row = {x: _bytes(x) // (region.size(x, ROWS) * region.size(x, COLUMNS)) for x in ways[0].held}
    for count in [*([1] if len(found) == 1 else []), *counts(region.size(region.last, COLUMNS))]:
        widths = region.widths(count)
        for way in [way for way in ways if count > 1 or way.rows]:
            macs, inside = way.macs(widths) - computed_once, 0
            if macs > most:
                ways.remove(way)
                continue
            for width in widths:
                rings = {x: lines * row[x] * width.get(x, 0) for x, lines in way.held.items()}
                whole = {x: region.size(x, ROWS) * row[x] * width.get(x, 0) for x in way.held}
                inside = max(inside, _in_chains(list(rings), rings, whole, between))
            ends = before + last if count > 1 else max(before, last)  # one call may write over what it reads
            tiles = ColumnTiles(first.name, region.last.name, count, way.rows)
            yield TilesCost(tiles, ends + inside + way.scratch, macs)


class _Inside:
    """What a part holds and computes if its bottlenecks are calls that make so many rows at a time; 0: they are not."""

    def __init__(self, region: Region, found: Sequence[Bottleneck], rows: int) -> None:
        self.rows = rows
        inside = {x for each in found for x in each.inside}
        self.held = region.held(inside, {each.narrow for each in found}, max(rows, 1))
        self.scratch = max((each.window(region, rows) for each in found), default=0)
        again = {each.widen: each.rows_made(region, rows) for each in found}
        high = {node: region.size(node.output, ROWS) for node in region.steps}
        self.of_column = {
            node.output: step.macs // high[node] * again.get(node, high[node])
            for node, step in region.steps.items()
            if step.macs
        }

    def macs(self, widths: Sequence[Mapping[Value, int]]) -> int:
        return sum(macs * width.get(x, 0) for width in widths for x, macs in self.of_column.items())


def _in_channels(region: Region, first: Value, memory: Memory) -> Iterator[TilesCost]:
    """Of the result of a convolution behind which all is pooled."""
    ends = _bytes(region.last) + (0 if _is_outside(first, memory) else _bytes(first))
    held, channels = region.held(), static(region.last.type.shape[1])
    rings = max(_bytes(x) * lines // region.size(x, ROWS) for x, lines in held.items())
    for count in (count for count in CHANNEL_BLOCKS if channels % count == 0):
        yield TilesCost(ColumnTiles(first.name, region.last.name, count), ends + rings // count, 0)


def counts(columns: int) -> list[int]:
    """The fewest tiles of each width."""
    return sorted({count for width in range(1, columns) if (count := -(-columns // width)) <= MOST})


def _in_chains(
    values: Sequence[Value], rings: Mapping[Value, int], whole: Mapping[Value, int], at: Sequence[Value]
) -> int:
    """The least peak of values between the ends, made in this order, if chains of rows may end at some of them."""
    best = {-1: (0, 0)}  # by where a chain begins: the peak so far, what is there whole
    for end in [*at, None]:
        stop = values.index(end) if end is not None else len(values)
        kept = whole[end] if end is not None else 0
        peaks = [
            max(peak, there + kept + sum(rings[x] for x in values[begin + 1 : stop]))
            for begin, (peak, there) in best.items()
        ]
        best[stop] = min(peaks), kept
    return best[len(values)][0]


def _is_outside(value: Value, memory: Memory) -> bool:
    """Does an input take nothing of the arena?"""
    names = (*memory.external, *memory.fetched)
    return value.producer is None and (ALL in names or value.name in names)


def _bytes(value: Value) -> int:
    return value.type.max_bytes
