"""Who lives at the same time as whom, and which addresses are still free.

If a part of block i and a part of block j are live together, the offset of i must stay out of the OPEN interval
(offset_j + low_j - high_i, offset_j + high_j - low_i): at its lower end i lies exactly below j, at its upper end
exactly above. All placing is arithmetic on such forbidden intervals, which is why blocks of several parts need no
special care.

Two representations give the same answers. `ListedConflicts` holds for each block a Python list of edges: quick for the
networks one meets. With many pairs those lists would not fit in memory, so `FilteredConflicts` answers each question
by filtering all parts with numpy.

Invariant: an offset below 0 means "not placed yet"; only placed blocks forbid anything.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from mccompile.memory.interval import Block, align_up

Ints = npt.NDArray[np.int64]
Offsets = list[int] | Ints
Edge = tuple[int, int, int]  # (j, below, above): i lies below j up to offset_j + below, above j from offset_j + above

UNPLACED = -1
LISTED_PAIRS = (20_000, 300_000)  # always listed up to the first; never above the second, for the memory it takes
LISTED_PAIRS_PER_BLOCK = 40  # in between: where sorting that many edges in Python takes as long as numpy's overhead


def conflicts_of(blocks: Sequence[Block]) -> Conflicts:
    """The conflicts in the representation that suits their number."""
    parts = Parts(blocks)
    listed = min(max(LISTED_PAIRS[0], LISTED_PAIRS_PER_BLOCK * len(blocks)), LISTED_PAIRS[1])
    return ListedConflicts(blocks, parts) if parts.pairs <= listed else FilteredConflicts(blocks, parts)


class Parts:
    """All parts that hold bytes, as columns sorted by start. `pairs` counts the pairs that live together."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        rows = [
            (part.start, part.end, part.low, part.high, index)
            for index, block in enumerate(blocks)
            for part in block.parts
            if part.low < part.high
        ]
        table = np.array(sorted(rows), dtype=np.int64).reshape(-1, 5)
        self.starts, self.ends, self.lows, self.highs, self.owners = (table[:, k].copy() for k in range(5))
        # Sorted by start, a later part lives together with this one exactly when it starts before this one ends.
        self.followers = np.searchsorted(self.starts, self.ends, "left") - np.arange(len(rows)) - 1
        self.pairs = int(self.followers.sum())


class Conflicts(ABC):
    """The conflicts of a list of blocks; `pairs`, the pairs of parts that live together, measures work."""

    def __init__(self, blocks: Sequence[Block], parts: Parts) -> None:
        self.blocks = blocks
        self.count = len(blocks)
        self.pairs = parts.pairs
        self.aligns = [block.align for block in blocks]
        self.sizes = [block.size for block in blocks]
        ends = np.sort(parts.ends)
        started = np.searchsorted(parts.starts, parts.ends, "left")
        ended = np.searchsorted(ends, parts.starts, "right")
        self.degrees = [int(x) for x in np.bincount(parts.owners, started - ended - 1, self.count)]

    @abstractmethod
    def unplaced(self) -> Offsets:
        """Offsets in which only the fixed blocks are placed."""

    @abstractmethod
    def lowest(self, i: int, offsets: Offsets, floor: int = 0) -> int:
        """The lowest free address of block i that is at least `floor`: first fit."""

    @abstractmethod
    def tightest(self, i: int, offsets: Offsets) -> int:
        """The bottom of the free gap that block i fills best, or the place above all if no gap holds it: best fit."""

    @abstractmethod
    def highest(self, i: int, offsets: Offsets, ceiling: int) -> int:
        """The highest free address of block i such that it ends at `ceiling` or below; negative if there is none."""

    @abstractmethod
    def above(self, i: int, offsets: Offsets) -> int:
        """The lowest address (not aligned) at which block i lies above all placed blocks that it conflicts with."""

    @abstractmethod
    def neighbours(self, i: int) -> list[int]:
        """The blocks that block i conflicts with, ascending."""

    def _fixed(self) -> list[int]:
        return [UNPLACED if block.fixed is None else block.fixed for block in self.blocks]


class ListedConflicts(Conflicts):
    """Every edge is known in advance."""

    def __init__(self, blocks: Sequence[Block], parts: Parts) -> None:
        super().__init__(blocks, parts)
        one = np.repeat(np.arange(len(parts.followers)), parts.followers)
        first = np.cumsum(parts.followers) - parts.followers
        other = np.arange(parts.pairs) - first[one] + one + 1
        apart = parts.owners[one] != parts.owners[other]
        one, other = one[apart], other[apart]
        below = (parts.lows[other] - parts.highs[one]).tolist()
        above = (parts.highs[other] - parts.lows[one]).tolist()
        edges: list[dict[Edge, None]] = [{} for _ in blocks]
        owners = zip(parts.owners[one].tolist(), parts.owners[other].tolist(), strict=True)
        for (i, j), low, high in zip(owners, below, above, strict=True):
            edges[i][j, low, high] = None
            edges[j][i, -high, -low] = None
        self.edges = [list(found) for found in edges]

    def unplaced(self) -> Offsets:
        return self._fixed()

    def lowest(self, i: int, offsets: Offsets, floor: int = 0) -> int:
        align = self.aligns[i]
        at = align_up(floor, align)
        for low, high in sorted(self._forbidden(i, offsets)):
            if low >= at:
                break
            if high > at:
                at = -(-high // align) * align
        return at

    def tightest(self, i: int, offsets: Offsets) -> int:
        align = self.aligns[i]
        at, best, rest = 0, UNPLACED, 0
        for low, high in sorted(self._forbidden(i, offsets)):
            if low >= at and (best == UNPLACED or low - at < rest):
                best, rest = at, low - at
            if high > at:
                at = -(-high // align) * align
        return at if best == UNPLACED else best

    def highest(self, i: int, offsets: Offsets, ceiling: int) -> int:
        align = self.aligns[i]
        at = (ceiling - self.sizes[i]) // align * align
        for high, low in sorted([(high, low) for low, high in self._forbidden(i, offsets)], reverse=True):
            if high <= at:
                break
            if low < at:
                at = low // align * align
        return at

    def places(self, i: int, offsets: Offsets) -> list[int]:
        """Every free address, ascending, where block i lies on the ground or directly on another block."""
        align = self.aligns[i]
        at = 0
        found = []
        for low, high in sorted(self._forbidden(i, offsets)):
            if low >= at:
                found.append(at)
            if high > at:
                at = -(-high // align) * align
        return [*found, at]

    def above(self, i: int, offsets: Offsets) -> int:
        return max(0, max([high for _, high in self._forbidden(i, offsets)], default=0))

    def neighbours(self, i: int) -> list[int]:
        return sorted({j for j, _, _ in self.edges[i]})

    def _forbidden(self, i: int, offsets: Offsets) -> list[tuple[int, int]]:
        return [(at + low, at + high) for j, low, high in self.edges[i] if (at := offsets[j]) >= 0]


class FilteredConflicts(Conflicts):
    """Edges are found anew for each question. Offsets are an array."""

    def __init__(self, blocks: Sequence[Block], parts: Parts) -> None:
        super().__init__(blocks, parts)
        self._parts = parts
        self._latest = np.maximum.accumulate(parts.ends)
        self._rows: list[list[int]] = [[] for _ in blocks]
        for row, owner in enumerate(parts.owners.tolist()):
            self._rows[owner].append(row)

    def unplaced(self) -> Offsets:
        return np.array(self._fixed(), dtype=np.int64)

    def lowest(self, i: int, offsets: Offsets, floor: int = 0) -> int:
        align = self.aligns[i]
        at = align_up(floor, align)
        lows, highs = self._sorted_forbidden(i, offsets)
        if not len(lows) or lows[0] >= at:
            return at
        bottoms = np.maximum(-(-highs // align) * align, at)
        free = np.flatnonzero(bottoms[:-1] <= lows[1:])
        return int(bottoms[free[0]] if len(free) else bottoms[-1])

    def tightest(self, i: int, offsets: Offsets) -> int:
        align = self.aligns[i]
        lows, highs = self._sorted_forbidden(i, offsets)
        bottoms = np.concatenate(([0], np.maximum(-(-highs // align) * align, 0)))
        rests = lows - bottoms[:-1]
        gaps = np.flatnonzero(rests >= 0)
        return int(bottoms[gaps[np.argmin(rests[gaps])]] if len(gaps) else bottoms[-1])

    def highest(self, i: int, offsets: Offsets, ceiling: int) -> int:
        align = self.aligns[i]
        at = (ceiling - self.sizes[i]) // align * align
        pieces = [(-high, -low) for low, high in self._pieces(i, offsets)]  # upside down it is `lowest`
        highs, lows = _sorted_reach(pieces)
        if not len(highs) or -highs[0] <= at:
            return at
        tops = np.minimum(-lows // align * align, at)
        free = np.flatnonzero(tops[:-1] >= -highs[1:])
        return int(tops[free[0]] if len(free) else tops[-1])

    def above(self, i: int, offsets: Offsets) -> int:
        return max([0, *(int(high.max(initial=0)) for _, high in self._pieces(i, offsets))])

    def neighbours(self, i: int) -> list[int]:
        return sorted({int(j) for _, rows in self._together(i) for j in self._parts.owners[rows]})

    def _sorted_forbidden(self, i: int, offsets: Offsets) -> tuple[Ints, Ints]:
        return _sorted_reach(list(self._pieces(i, offsets)))

    def _pieces(self, i: int, offsets: Offsets) -> Iterator[tuple[Ints, Ints]]:
        parts = self._parts
        known = np.asarray(offsets)
        for part, rows in self._together(i):
            at = known[parts.owners[rows]]
            rows, at = rows[at >= 0], at[at >= 0]
            yield at + parts.lows[rows] - parts.highs[part], at + parts.highs[rows] - parts.lows[part]

    def _together(self, i: int) -> Iterator[tuple[int, Ints]]:
        """For each part of block i the parts of other blocks that live at the same time."""
        parts = self._parts
        for part in self._rows[i]:
            first = int(np.searchsorted(self._latest, parts.starts[part], "right"))
            last = int(np.searchsorted(parts.starts, parts.ends[part], "left"))
            hit = (parts.ends[first:last] > parts.starts[part]) & (parts.owners[first:last] != i)
            yield part, first + np.flatnonzero(hit)


def _sorted_reach(pieces: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """Intervals sorted by their lower ends, with the highest upper end so far in place of each upper end."""
    if not pieces:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    lows = np.concatenate([low for low, _ in pieces])
    highs = np.concatenate([high for _, high in pieces])
    order = np.argsort(lows, kind="stable")
    return lows[order], np.maximum.accumulate(highs[order])
