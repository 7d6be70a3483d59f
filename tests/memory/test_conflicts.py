from __future__ import annotations

import random
from collections.abc import Callable

from mccompile.memory.conflicts import UNPLACED, FilteredConflicts, ListedConflicts, Parts
from mccompile.memory.interval import Block, Part


def test_both_representations_give_the_same_answers(make_blocks: Callable[..., list[Block]]) -> None:
    dice = random.Random(2)
    for _ in range(200):
        blocks = make_blocks(dice, dice.randint(1, 12), aligns=(1, 2, 4))
        parts = Parts(blocks)
        listed, filtered = ListedConflicts(blocks, parts), FilteredConflicts(blocks, parts)
        some, same = listed.unplaced(), filtered.unplaced()
        for i in range(len(blocks)):
            some[i] = same[i] = dice.choice((UNPLACED, dice.randrange(40)))
        i, limit = dice.randrange(len(blocks)), dice.randrange(60)
        assert listed.lowest(i, some) == filtered.lowest(i, same)
        assert listed.lowest(i, some, limit) == filtered.lowest(i, same, limit)
        assert listed.tightest(i, some) == filtered.tightest(i, same)
        assert listed.highest(i, some, limit) == filtered.highest(i, same, limit)
        assert listed.above(i, some) == filtered.above(i, same)
        assert listed.neighbours(i) == filtered.neighbours(i)


def test_gaps_below_between_and_above() -> None:
    blocks = [Block(name, (Part(0, 1, 0, size),), 1) for name, size in (("a", 10), ("b", 10), ("new", 5))]
    parts = Parts(blocks)
    conflicts = ListedConflicts(blocks, parts)
    offsets = [8, 23, UNPLACED]  # free: [0, 8), [18, 23), [33, ...)
    assert conflicts.places(2, offsets) == [0, 18, 33]
    assert (conflicts.lowest(2, offsets), conflicts.lowest(2, offsets, 4)) == (0, 18)
    assert conflicts.tightest(2, offsets) == 18
    assert (conflicts.highest(2, offsets, 40), conflicts.highest(2, offsets, 34)) == (35, 18)
    assert conflicts.above(2, offsets) == 33
