"""Tiles along one axis of an image for windows that slide over it: those at its edges apart from those inside, where
all taps of all windows are inside as well.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.records import dataclass
from ..tiles import Range
from ..windows import Axis

NARROW = 8  # columns: an image of so many is taken in one tile


@dataclass(frozen=True)
class Run:
    """Equal tiles along one axis: first position, positions per tile, how many tiles; `edge`: some products would lie
    outside; `bounded`: which ones is found at run time."""

    first: int
    count: int
    tiles: int
    edge: bool
    bounded: bool = False


def is_inside(axis: Axis, run: Run, point: int, tap: int) -> bool:
    """Can the tap of a point lie inside the image? For tiles at edges that is decided here."""
    if not run.edge or run.bounded:
        return True
    return 0 <= (run.first + point) * axis.stride - axis.pad + tap * axis.dilation < axis.size


def middle(axis: Axis) -> tuple[int, int]:
    """The columns that are worth wide tiles: all of a narrow image; of a wide one those whose windows lie inside."""
    first, end = axis.interior
    return (first, end) if axis.out > NARROW and end - first >= NARROW else (0, axis.out)


def edges_apart(axis: Axis, size: int) -> list[Run]:
    """Columns at the edges of a wide image are tiles of their own: they need other code, and little of it."""
    first, end = middle(axis)
    if (first, end) == (0, axis.out):
        return covering(axis, size)
    whole = (end - first) // size
    runs = [Run(0, first, 1, True)] if first else []
    runs += [Run(first, size, whole, False)] if whole else []
    rest = end - first - whole * size
    runs += [Run(end - rest, rest, 1, False)] if rest else []
    return [*runs, Run(end, axis.out - end, 1, True)] if end < axis.out else runs


def covering(axis: Axis, size: int) -> list[Run]:
    """Tiles from the first position on, as many together as are alike."""
    first, end = axis.interior
    runs: list[Run] = []
    at = 0
    while at < axis.out:
        count = min(size, axis.out - at)
        edge = at < first or at + count > end
        if runs and not edge and not runs[-1].edge and runs[-1].count == count:
            runs[-1] = replace(runs[-1], tiles=runs[-1].tiles + 1)
        else:
            runs.append(Run(at, count, 1, edge))
        at += count
    return runs


def tiles_loop(counter: str, run: Run) -> tuple[str, str]:
    """C of the position where a tile starts, and what opens the loop over tiles, or a block where there is one."""
    if run.tiles == 1:
        return str(run.first), "{"
    return counter, Range(counter, run.first + run.count * run.tiles, str(run.first), step=run.count).header
