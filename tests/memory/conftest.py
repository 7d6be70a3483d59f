"""Random blocks for the tests of the planners."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from mccompile.memory.interval import Block, Part, glue

BlockMaker = Callable[..., list[Block]]


def random_blocks(
    dice: random.Random,
    count: int,
    *,
    moments: int = 8,
    life: int = 4,
    bytes_: int = 12,
    aligns: Sequence[int] = (1,),
    several_parts: float = 0.4,
    fixed: bool = False,
) -> list[Block]:
    """Blocks of one part or of a chain of overwrites; at most two fixed ones, which never conflict with each other."""
    blocks = []
    for number in range(count):
        now = dice.randrange(moments)
        parts = []
        for _ in range(dice.choice((2, 3)) if dice.random() < several_parts else 1):
            end = now + dice.randint(1, life)
            low = dice.randrange(bytes_)
            parts.append(Part(now, end, low, low + dice.randint(0 if dice.random() < 0.05 else 1, bytes_)))
            now = end - dice.randrange(2) if end - now > 1 else end
        blocks.append(glue(f"b{number}", parts, dice.choice(aligns))[0])
    if fixed:
        top = 0
        for number in dice.sample(range(count), min(count, 2)):
            block = blocks[number]
            at = -(-(top + dice.randrange(2 * bytes_)) // block.align) * block.align
            blocks[number] = Block(block.name, block.parts, block.align, at)
            top = at + block.size
    return blocks


@pytest.fixture
def make_blocks() -> BlockMaker:
    return random_blocks
