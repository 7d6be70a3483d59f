"""Best fit over the time-ordered allocations and frees: what a good heap would do, known in advance.

Blocks are placed in the order in which they come to life, each in the smallest gap that holds it, else above all. The
blocks placed earlier that still live are exactly the heap at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence

from mccompile.memory import placing
from mccompile.memory.conflicts import conflicts_of
from mccompile.memory.interval import Block, Placement


def best_fit(blocks: Sequence[Block]) -> Placement:
    placing.check_fixed(blocks)
    conflicts = conflicts_of(blocks)
    in_time = sorted(range(len(blocks)), key=lambda i: (blocks[i].start, i))
    return placing.as_placement(conflicts, placing.best_fit(conflicts, in_time))
