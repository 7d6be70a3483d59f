"""Centred: blocks that take turns with a piece of memory have their middles in the same place.

For models that several workers share. Two of them mostly take the two halves of every tensor; a byte that both come to
write by turns has to move from one core's cache to the other's each time, which costs far more than computing it. Here
the lower half of a piece always belongs to one worker and the upper half to the other.

Each block of at most `MOST` times push-down's height; where that is not enough, push-down's placement it is.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence

from mccompile.memory.interval import Block, Placement, align_up, placement_of
from mccompile.memory.push_down import push_down

MOST = 1.5


class _Zone:
    """Memory of which one block at a time is the owner."""

    def __init__(self, size: int) -> None:
        self.size, self.members = size, list[int]()
        self.spans: list[tuple[int, int]] = []  # sorted

    def add(self, index: int, block: Block) -> bool:
        """Whether it is free for the block all its life; then the block has it."""
        at = bisect(self.spans, (block.start, block.end))
        free = (at == 0 or self.spans[at - 1][1] <= block.start) and (
            at == len(self.spans) or block.end <= self.spans[at][0]
        )
        if free:
            self.spans.insert(at, (block.start, block.end))
            self.members.append(index)
        return free


def centred(blocks: Sequence[Block]) -> Placement:
    least = push_down(blocks)
    if any(block.fixed is not None for block in blocks):
        return least
    offsets, begin = [0] * len(blocks), 0
    for zone in _zones(blocks):
        align = max(blocks[index].align for index in zone.members)
        begin = end = align_up(begin, align)
        for index in zone.members:
            offsets[index] = begin + align_up((zone.size - blocks[index].size) // 2, blocks[index].align)
            end = max(end, offsets[index] + blocks[index].size)
        begin = end
    found = placement_of(blocks, offsets)
    return found if found.size <= MOST * least.size else least


def _zones(blocks: Sequence[Block]) -> list[_Zone]:
    """The largest block first, each in the first zone that is free; a zone is as large as the first of its blocks.
    Blocks without bytes are in none: behind the last zone they would make the arena larger."""
    zones: list[_Zone] = []
    sized = [index for index, block in enumerate(blocks) if block.size]
    for index in sorted(sized, key=lambda i: (-blocks[i].size, blocks[i].start, i)):
        if not any(zone.add(index, blocks[index]) for zone in zones):
            zones.append(_Zone(blocks[index].size))
            zones[-1].add(index, blocks[index])
    return zones
