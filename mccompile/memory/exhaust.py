"""The optimum of a few blocks, by trying everything that could be one.

In some optimal placement nothing can sink, so the blocks can be placed one after the other such that each lies on the
ground or directly on one that was placed before. The search tries every block next at every such place, skips
placements it has seen, and gives up on one as soon as a missing block no longer fits under the best height known.
(With mixed alignments a rare optimum has blocks that could sink only together, and is missed.)

Invariant: at most `work` partial placements are looked at; then the best so far stands.
"""

from __future__ import annotations

from mccompile.memory import placing
from mccompile.memory.conflicts import UNPLACED, ListedConflicts, Offsets


def exhaust(conflicts: ListedConflicts, start: Offsets, bound: int, work: int) -> tuple[Offsets, bool]:
    """A placement no higher than the one to start from, and whether the search was complete or met the bound."""
    search = _Search(conflicts, start, bound, work)
    search.extend(conflicts.unplaced())
    return search.best, search.work > 0


class _Search:
    def __init__(self, conflicts: ListedConflicts, start: Offsets, bound: int, work: int) -> None:
        self.conflicts = conflicts
        self.best, self.height = start, placing.height(conflicts, start)
        self.bound = bound
        self.work = work
        self.seen: set[tuple[int, ...]] = set()

    def extend(self, offsets: Offsets) -> None:
        """Complete a partial placement in every way that promises to be lower than the best."""
        key = tuple(offsets)
        if key in self.seen or self.work <= 0 or self.height <= self.bound:
            return
        self.seen.add(key)
        self.work -= 1
        conflicts = self.conflicts
        missing = [i for i in range(conflicts.count) if offsets[i] == UNPLACED]
        if not missing:
            height = placing.height(conflicts, offsets)
            if height < self.height:
                self.best, self.height = offsets.copy(), height
            return
        places = [(conflicts.places(i, offsets), i) for i in missing]
        if any(found[0] + conflicts.sizes[i] >= self.height for found, i in places):
            return
        for found, i in sorted(places):
            for at in found:
                if at + conflicts.sizes[i] < self.height:
                    offsets[i] = at
                    self.extend(offsets)
            offsets[i] = UNPLACED
