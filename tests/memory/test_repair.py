"""Repairs place anew only what a move concerns: what comes out is as if everything had been placed anew."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mccompile.memory import placing
from mccompile.memory.conflicts import Conflicts, FilteredConflicts, ListedConflicts, Parts
from mccompile.memory.interval import Block, lower_bound
from mccompile.memory.repair import _Search

KINDS: dict[str, Callable[[list[Block], Parts], Conflicts]] = {"listed": ListedConflicts, "filtered": FilteredConflicts}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", KINDS)
def test_a_placement_is_what_first_fit_makes_of_its_order(
    kind: str, seed: int, make_blocks: Callable[..., list[Block]]
) -> None:
    dice = random.Random(seed)
    blocks = make_blocks(dice, 40, moments=20, bytes_=100, fixed=seed % 2 == 1)
    conflicts = KINDS[kind](blocks, Parts(blocks))
    search = _Search(conflicts, placing.first_fit(conflicts, range(len(blocks))), lower_bound(blocks), dice, {})
    moves = 0
    for _ in range(150):
        order = search.order
        search.step()
        moves += search.order is not order
        anew = conflicts.unplaced()
        for i in search.order:
            anew[i] = conflicts.lowest(i, anew, search.floors.get(i, 0))
        assert list(search.offsets) == list(anew)
    assert moves
