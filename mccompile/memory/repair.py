"""Counted repairs of placements that miss the bound: move what sticks out, place again, keep what is no worse.

A placement made by first fit is described by the order in which its blocks were placed. A repair takes one of the
blocks that reach above the bound and one that was placed before it and is, directly or at one remove, in its way; it
moves the first before the second, or exchanges them, and places anew from there on. Where blocks have several parts,
the lowest free place is not always a good one, so a repair may also give a block a floor: a higher place to start from.
What counts is the overrun, the sum of the bytes by which blocks reach above the bound: unlike the height it tells when
one of several blocks in the way has gone. A repair that leaves the overrun as it is is kept too: plateaus have to be
crossed. After many useless repairs the search goes back to one of the placements it set out from.

Invariant: work is counted (as visits to edges; a larger problem gets fewer repairs), the dice are seeded, and every
choice is made from a list in a fixed order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from mccompile.memory import placing
from mccompile.memory.conflicts import Conflicts, Offsets

PATIENCE = 40


def repair(conflicts: Conflicts, pool: Sequence[Offsets], bound: int, work: int) -> Offsets:
    """The best of the pool (which is sorted, best first) after this much work on repairs, or sooner at the bound."""
    best = pool[0]
    best_height = placing.height(conflicts, best)
    dice = random.Random(1)
    round_number = 0
    near: dict[int, list[int]] = {}
    while work > 0 and best_height > bound:
        start = pool[round_number % len(pool)] if round_number % 2 else best
        round_number += 1
        search = _Search(conflicts, start, bound, dice, near)
        stale = 0
        while work > 0 and stale < PATIENCE:
            before = search.overrun
            work -= search.step()
            stale = 0 if search.overrun < before else stale + 1
            if search.height < best_height:
                best, best_height = search.offsets, search.height
                if best_height <= bound:
                    break
    return best


@dataclass(frozen=True, slots=True)
class _Move:
    """An order of the blocks and their floors, which differ from the present ones from a position on."""

    order: list[int]
    floors: dict[int, int]
    first: int
    moved: tuple[int, ...]  # whose place in the order or floor changed; all others keep their order


class _Search:
    """A placement that moves from repair to repair; `offsets` is what first fit makes of `order` and `floors`."""

    def __init__(
        self, conflicts: Conflicts, start: Offsets, bound: int, dice: random.Random, near: dict[int, list[int]]
    ) -> None:
        self.conflicts = conflicts
        self.bound = bound
        self.dice = dice
        self.near = near  # neighbours of the blocks that were asked for
        self.rigid = any(len(block.parts) > 1 for block in conflicts.blocks)
        self.order = [i for i in placing.bottom_up(conflicts, start) if conflicts.blocks[i].fixed is None]
        self.floors: dict[int, int] = {}
        self.offsets = placing.first_fit(conflicts, self.order)
        self.height = placing.height(conflicts, self.offsets)
        if self.height > placing.height(conflicts, start):  # with its own addresses as floors the start is reproduced
            self.floors = {i: int(start[i]) for i in self.order}
            self.offsets, self.height = start, placing.height(conflicts, start)
        self._look()

    def _look(self) -> None:
        """What choices are made from: the place of each block in the order, and the blocks above the bound."""
        self.rank = {i: at for at, i in enumerate(self.order)}
        sizes = self.conflicts.sizes
        self.top = [i for i in self.order if self.offsets[i] + sizes[i] > self.bound]
        self.overrun = sum(self.offsets[i] + sizes[i] - self.bound for i in self.top)

    def step(self) -> int:
        """Try one repair; returns the work it took."""
        move = self._choose()
        if move is None:
            return self.conflicts.count
        offsets = self._start_of(move)
        work = self.conflicts.count
        sizes, bound = self.conflicts.sizes, self.bound
        overrun = sum(self.offsets[i] + sizes[i] - bound for i in self.top if self.rank[i] < move.first)
        concerned = set(move.moved).union(*map(self._neighbours, move.moved))  # the others lie where they lay
        degrees, lowest = self.conflicts.degrees, self.conflicts.lowest
        for i in move.order[move.first :]:
            work += 8 + degrees[i]
            at = self.offsets[i]
            if i in concerned:
                at = lowest(i, offsets, move.floors.get(i, 0))
                if at != self.offsets[i]:
                    concerned.update(self._neighbours(i))
            offsets[i] = at
            if at + sizes[i] > bound:
                overrun += at + sizes[i] - bound
                if overrun > self.overrun:
                    return work
        self.order, self.floors, self.offsets = move.order, move.floors, offsets
        self.height = placing.height(self.conflicts, offsets)
        self._look()
        return work

    def _choose(self) -> _Move | None:
        order, rank = self.order, self.rank
        top = self._pick(self.top)
        if top is None:
            return None
        near = self._neighbours(top)
        if self.dice.random() < 0.5:
            between = self._pick(near)
            near = near if between is None else self._neighbours(between)
        if self.rigid and self.dice.random() < 0.25:
            block = self._pick([top, *(i for i in near if i in rank)])
            return None if block is None else self._change_floor(block, rank[block])
        other = self._pick([i for i in near if rank.get(i, len(order)) < rank[top]])
        if other is None:
            return None
        first, last = rank[other], rank[top]
        if self.dice.random() < 0.5:
            changed = [*order[:first], top, *order[first:last], *order[last + 1 :]]
        else:
            changed = order.copy()
            changed[first], changed[last] = top, other
        return _Move(changed, self.floors, first, (top, other))

    def _change_floor(self, block: int, first: int) -> _Move:
        """Start another search for the place of a block: from the ground, or above one of its neighbours."""
        floors = {i: floor for i, floor in self.floors.items() if i != block}
        move = _Move(self.order, floors, first, (block,))
        if self.dice.random() < 0.5:
            below = self._pick(self._neighbours(block))
            if below is not None:
                ends = [part.high for part in self.conflicts.blocks[below].parts]
                lows = [part.low for part in self.conflicts.blocks[block].parts]
                apart = ends[self._index(len(ends))] - lows[self._index(len(lows))]
                floors[block] = max(0, int(self.offsets[below]) + apart)
        return move

    def _neighbours(self, block: int) -> list[int]:
        found = self.near.get(block)
        if found is None:
            found = self.near[block] = self.conflicts.neighbours(block)
        return found

    def _start_of(self, move: _Move) -> Offsets:
        offsets = self.conflicts.unplaced()
        for i in move.order[: move.first]:
            offsets[i] = self.offsets[i]
        return offsets

    def _pick(self, candidates: list[int]) -> int | None:
        return candidates[self._index(len(candidates))] if candidates else None

    def _index(self, count: int) -> int:
        return int(self.dice.random() * count)
