"""Greedy by size: the largest block first, each at the lowest free address. Large blocks are the hard ones to place."""

from __future__ import annotations

from collections.abc import Sequence

from mccompile.memory import placing
from mccompile.memory.conflicts import conflicts_of
from mccompile.memory.interval import Block, Placement


def greedy_by_size(blocks: Sequence[Block]) -> Placement:
    placing.check_fixed(blocks)
    conflicts = conflicts_of(blocks)
    by_size = sorted(range(len(blocks)), key=lambda i: (-blocks[i].size, blocks[i].start, i))
    return placing.as_placement(conflicts, placing.first_fit(conflicts, by_size))
