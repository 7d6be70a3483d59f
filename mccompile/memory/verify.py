"""The judge of a placement. Invariant: it knows nothing of planners, only of what a placement promises.

It sweeps over time and keeps the live byte ranges in a list sorted by address. A range that becomes live is compared
with its neighbours only: as long as the live ranges are disjoint, an overlap must show there.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence

from mccompile.memory.coverage import Coverage, Rectangle
from mccompile.memory.interval import Block, Placement


def verify(blocks: Sequence[Block], placement: Placement) -> list[str]:
    """Everything that is wrong with a placement, as sentences; an empty list is a proof."""
    if len(placement.offsets) != len(blocks):
        return [f"{len(blocks)} blocks but {len(placement.offsets)} offsets"]
    wrong: list[str] = []
    highest = 0
    for block, offset in zip(blocks, placement.offsets, strict=True):
        highest = max(highest, offset + block.size)
        if offset < 0:
            wrong.append(f"{block.name} lies at the negative address {offset}")
        if offset % block.align:
            wrong.append(f"{block.name} lies at {offset}, which is not a multiple of {block.align}")
        if block.fixed is not None and offset != block.fixed:
            wrong.append(f"{block.name} lies at {offset} but is fixed at {block.fixed}")
    if placement.size != highest:
        wrong.append(f"the size is said to be {placement.size}, but the highest end is {highest}")
    return wrong + _overlaps(blocks, placement.offsets)


def _overlaps(blocks: Sequence[Block], offsets: Sequence[int]) -> list[str]:
    """Pairs of blocks that use a byte at the same time. After the first overlap at a place others may go unnoticed."""
    events: list[tuple[int, int, int, int, int]] = []  # (time, 0 ends or 1 starts, low, high, block)
    for index, (block, offset) in enumerate(zip(blocks, offsets, strict=True)):
        for start, end, low, high in _disjoint_parts(block):
            events.append((start, 1, offset + low, offset + high, index))
            events.append((end, 0, offset + low, offset + high, index))
    live: list[tuple[int, int, int]] = []
    wrong: dict[str, None] = {}
    for time, starts, low, high, index in sorted(events):
        entry = (low, high, index)
        if not starts:
            del live[bisect_right(live, entry) - 1]
            continue
        at = bisect_right(live, entry)
        for other_low, other_high, other in live[max(0, at - 1) : at + 1]:
            if low < other_high and other_low < high:
                both = " and ".join(blocks[i].name for i in sorted((index, other)))
                shared = f"[{max(low, other_low)}, {min(high, other_high)})"
                wrong.setdefault(f"{both} share the bytes {shared} at time {time}")
        insort(live, entry)
    return list(wrong)


def _disjoint_parts(block: Block) -> list[Rectangle]:
    """(start, end, low, high) of a block, cut so that its own parts never overlap each other."""
    parts = [(part.start, part.end, part.low, part.high) for part in block.parts if part.low < part.high]
    if len(parts) < 2:
        return parts
    coverage = Coverage(parts)
    since: dict[int, int] = {}
    pieces = []
    for time, come, gone in coverage.changes():
        since |= dict.fromkeys(come, time)
        for cell in gone:
            pieces.append((since.pop(cell), time, coverage.edges[cell], coverage.edges[cell + 1]))
    return pieces
