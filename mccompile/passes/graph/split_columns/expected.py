"""What strips are expected to take, for every part of a graph and every number of them: rings of rows as wide as a
strip, between the values that the part begins and ends with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from ....base.strips import Strips
from ....graph.ir import Value
from ...api import ALL, Memory, StripsCost
from .column_steps import COLUMNS, ROWS
from .regions import Region, Through

MOST = 32  # strips
LONGEST = 48  # nodes of a part


def expected(ways: Sequence[Through], memory: Memory) -> Iterator[StripsCost]:
    """As long as they compute at most so much more."""
    most = (memory.recompute - 1) * sum(_macs(Region(way.nodes)) for way in ways if way.nodes)
    ends = _narrow([way.value for way in ways])
    for i, first in enumerate(ways):
        for j in range(i + 1, len(ways)) if first.value in ends else ():
            between = ways[i + 1 : j + 1]
            region = Region(tuple(node for way in between for node in way.nodes))
            if not region.is_whole or len(region.nodes) > LONGEST:
                break
            if ways[j].value in ends:
                yield from _of_all_counts(region, first.value, [way.value for way in between[:-1]], memory, most)


def _narrow(values: Sequence[Value]) -> set[Value]:
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


def _macs(region: Region) -> int:
    return sum(step.macs * region.size(node.output, COLUMNS) for node, step in region.steps.items())


def _of_all_counts(
    region: Region, first: Value, between: Sequence[Value], memory: Memory, most: float
) -> Iterator[StripsCost]:
    ends = _bytes(region.last) + (0 if _is_outside(first, memory) else _bytes(first))
    held, computed_once = region.held(), _macs(region)
    row = {x: _bytes(x) // (region.size(x, ROWS) * region.size(x, COLUMNS)) for x in held}
    for count in _counts(region.size(region.last, COLUMNS)):
        macs, inside = -computed_once, 0
        for width in region.widths(count):
            macs += sum(step.macs * width.get(node.output, 0) for node, step in region.steps.items())
            rings = {x: lines * row[x] * width.get(x, 0) for x, lines in held.items()}
            whole = {x: region.size(x, ROWS) * row[x] * width.get(x, 0) for x in held}
            inside = max(inside, _in_chains(list(rings), rings, whole, between))
        if macs > most:
            return
        yield StripsCost(Strips(first.name, region.last.name, count), ends + inside, macs)


def _counts(columns: int) -> list[int]:
    """The fewest strips of each width."""
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
