from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from mccompile.memory.interval import Block, Part, lower_bound, naive_size
from mccompile.memory.planners import PLANNERS
from mccompile.memory.verify import verify


@pytest.mark.parametrize("name", PLANNERS)
def test_random_blocks_never_overlap(name: str, make_blocks: Callable[..., list[Block]]) -> None:
    """Thousands of sets: one part and several, alignments, fixed blocks, empty blocks."""
    dice = random.Random(1)
    for number in range(1000):
        blocks = make_blocks(dice, dice.randint(1, 7), aligns=(1, 2, 4, 16), fixed=number % 3 == 0)
        placement = PLANNERS[name](blocks)
        assert verify(blocks, placement) == [], blocks
        assert placement.size >= lower_bound(blocks)


@pytest.mark.parametrize("name", PLANNERS)
def test_no_blocks_need_no_arena(name: str) -> None:
    assert (PLANNERS[name]([]).offsets, PLANNERS[name]([]).size) == ((), 0)


@pytest.mark.parametrize("name", PLANNERS)
def test_memory_of_the_dead_is_used_again(name: str) -> None:
    chain = [Block(f"b{i}", (Part(i, i + 2, 0, 64),)) for i in range(10)]
    assert PLANNERS[name](chain).size == 128 < naive_size(chain)
