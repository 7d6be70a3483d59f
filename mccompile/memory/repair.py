"""Counted repairs of placements that miss the bound: move what sticks out, place again, keep what is no worse.

A placement made by first fit is described by the order in which its blocks were placed. A repair takes one of the
blocks that reach the top and one that was placed before it and is, directly or at one remove, in its way; it moves the
first before the second, or exchanges them, and places anew from there on. A repair that does not lower the top but
does not raise it either is kept too: plateaus have to be crossed. After many useless repairs the search goes back to
one of the placements it set out from.

Invariant: the number of repairs is given, the dice are seeded, and every choice is made from a list in a fixed order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from mccompile.memory import placing
from mccompile.memory.conflicts import Conflicts, Offsets

PATIENCE = 120


def repair(conflicts: Conflicts, pool: Sequence[Offsets], bound: int, repairs: int) -> Offsets:
    """The best of the pool (which is sorted, best first) after at most `repairs` repairs, or sooner at the bound."""
    best = pool[0]
    best_height = placing.height(conflicts, best)
    dice = random.Random(1)
    done = 0
    round_number = 0
    while done < repairs and best_height > bound:
        start = pool[round_number % len(pool)] if round_number % 2 else best
        round_number += 1
        search = _Search(conflicts, start, dice)
        stale = 0
        while done < repairs and stale < PATIENCE:
            done += 1
            before = search.height
            search.step()
            stale = 0 if search.height < before else stale + 1
            if search.height < best_height:
                best, best_height = search.offsets, search.height
                if best_height <= bound:
                    break
    return best


class _Search:
    """A placement that moves from repair to repair; `offsets` is always what first fit makes of `order`."""

    def __init__(self, conflicts: Conflicts, start: Offsets, dice: random.Random) -> None:
        self.conflicts = conflicts
        self.dice = dice
        self.order = [i for i in placing.bottom_up(conflicts, start) if conflicts.blocks[i].fixed is None]
        self.offsets = placing.first_fit(conflicts, self.order)
        self.height = placing.height(conflicts, self.offsets)

    def step(self) -> None:
        move = self._choose()
        if move is None:
            return
        order, first = move
        offsets = self._place(order, first)
        if offsets is not None:
            self.order, self.offsets, self.height = order, offsets, placing.height(self.conflicts, offsets)

    def _choose(self) -> tuple[list[int], int] | None:
        """A changed order and the position of its first change."""
        order, sizes = self.order, self.conflicts.sizes
        rank = {i: at for at, i in enumerate(order)}
        top = self._pick([i for i in order if self.offsets[i] + sizes[i] == self.height])
        if top is None:
            return None
        near = self.conflicts.neighbours(top)
        if self.dice.random() < 0.5:
            between = self._pick(near)
            near = near if between is None else self.conflicts.neighbours(between)
        other = self._pick([i for i in near if rank.get(i, len(order)) < rank[top]])
        if other is None:
            return None
        first, last = rank[other], rank[top]
        if self.dice.random() < 0.5:
            changed = [*order[:first], top, *order[first:last], *order[last + 1 :]]
        else:
            changed = order.copy()
            changed[first], changed[last] = top, other
        return changed, first

    def _place(self, order: list[int], first: int) -> Offsets | None:
        """Place the order again from its first change on; None as soon as it gets higher than it was."""
        conflicts = self.conflicts
        offsets = conflicts.unplaced()
        for i in order[:first]:
            offsets[i] = self.offsets[i]
        for i in order[first:]:
            at = conflicts.lowest(i, offsets)
            if at + conflicts.sizes[i] > self.height:
                return None
            offsets[i] = at
        return offsets

    def _pick(self, candidates: list[int]) -> int | None:
        return candidates[int(self.dice.random() * len(candidates))] if candidates else None
