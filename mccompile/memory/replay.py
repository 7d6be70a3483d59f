"""A second judge of a placement: run the program's reads and writes on tagged memory.

Every write leaves its own tag in the arena, at the address that the placement gives it, and in a private copy of the
block that nobody else can touch. A read is right if the arena shows what the private copy shows. It must be so before
the step and still after its writes, because a kernel reads while it writes: what a step overwrites on purpose, inside
its own block, is in the private copy too; what it overwrites by accident is not.

Invariant: nothing of lifetimes, alignment or planners is known here, only who reads and writes which bytes when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mccompile.memory.interval import Block, Placement

Tags = npt.NDArray[np.int32]
NEVER_WRITTEN = 0


@dataclass(frozen=True, slots=True)
class Access:
    """The bytes [low, high) of a block (an index), counted from the block's address."""

    block: int
    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Step:
    """Workspace is a write; a graph input is a write of a first step, an output a read of a last one."""

    reads: tuple[Access, ...] = ()
    writes: tuple[Access, ...] = ()
    name: str = ""


def replay(blocks: Sequence[Block], placement: Placement, steps: Sequence[Step]) -> list[str]:
    """Every read that would not see what was written last to its block, as sentences."""
    arena: Tags = np.zeros(placement.size, np.int32)
    own: dict[int, Tags] = {}
    last_use = {access.block: number for number, step in enumerate(steps) for access in (*step.reads, *step.writes)}
    wrong: list[str] = []
    tag = NEVER_WRITTEN
    for number, step in enumerate(steps):
        name = step.name or f"step {number}"
        for access in (*step.reads, *step.writes):
            own.setdefault(access.block, np.zeros(blocks[access.block].size, np.int32))
        intact = []
        for access in step.reads:
            if (own[access.block][access.low : access.high] == NEVER_WRITTEN).any():
                wrong.append(f"{name} reads bytes of {blocks[access.block].name} that were never written")
            elif not _shows(arena, own, placement, access):
                wrong.append(f"{name} reads {blocks[access.block].name}, which was overwritten")
            else:
                intact.append(access)
        for access in step.writes:
            tag += 1
            at = placement.offsets[access.block]
            arena[at + access.low : at + access.high] = tag
            own[access.block][access.low : access.high] = tag
        for access in (*intact, *step.writes):
            if not _shows(arena, own, placement, access):
                wrong.append(f"{name} overwrites its own operand or result {blocks[access.block].name}")
        for block in [block for block in own if last_use[block] == number]:
            del own[block]
    return list(dict.fromkeys(wrong))


def _shows(arena: Tags, own: dict[int, Tags], placement: Placement, access: Access) -> bool:
    at = placement.offsets[access.block]
    return bool(np.array_equal(arena[at + access.low : at + access.high], own[access.block][access.low : access.high]))
