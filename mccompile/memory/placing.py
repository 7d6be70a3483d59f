"""Placing blocks one after the other in a given order, and settling a finished placement.

Invariant: every function returns offsets in which no two blocks overlap and fixed blocks lie where they must.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from mccompile.base.errors import InternalError
from mccompile.memory.conflicts import UNPLACED, Conflicts, Offsets
from mccompile.memory.interval import Block, Placement, align_up, placement_of
from mccompile.memory.verify import verify


def check_fixed(blocks: Sequence[Block]) -> None:
    """Fixed blocks that overlap cannot be planned: whoever fixed them made a mistake."""
    fixed = [block for block in blocks if block.fixed is not None]
    wrong = verify(fixed, placement_of(fixed, [block.fixed or 0 for block in fixed]))
    if wrong:
        raise InternalError("; ".join(wrong))


def first_fit(conflicts: Conflicts, order: Iterable[int]) -> Offsets:
    """Each block in turn at the lowest address that is free."""
    return _placed(conflicts, order, conflicts.lowest)


def best_fit(conflicts: Conflicts, order: Iterable[int]) -> Offsets:
    """Each block in turn in the gap that it fills best."""
    return _placed(conflicts, order, conflicts.tightest)


def _placed(conflicts: Conflicts, order: Iterable[int], place: Callable[[int, Offsets], int]) -> Offsets:
    offsets = conflicts.unplaced()
    for i in order:
        if conflicts.blocks[i].fixed is None:
            offsets[i] = place(i, offsets)
    return offsets


def stack(conflicts: Conflicts, order: Iterable[int]) -> Offsets:
    """Each block in turn above all earlier ones that it conflicts with, and clear of the fixed ones.

    This is the second step of push-down: unlike `first_fit` it keeps the order, a block never slips below an earlier.
    """
    offsets = conflicts.unplaced()
    fixed = [i for i in range(conflicts.count) if offsets[i] != UNPLACED]
    earlier = offsets.copy()
    for i in fixed:
        earlier[i] = UNPLACED
    for i in order:
        if conflicts.blocks[i].fixed is None:
            bottom = conflicts.above(i, earlier)
            clear = conflicts.lowest(i, offsets, bottom) if fixed else align_up(bottom, conflicts.aligns[i])
            offsets[i] = earlier[i] = clear
    return offsets


def settle(conflicts: Conflicts, offsets: Offsets, rounds: int) -> Offsets:
    """Shake a placement: press all blocks against its top, highest first, then down again, lowest first.

    Pressed upwards, the blocks leave their holes at the bottom; on the way down each may fall into a hole that was
    not there before. Repeated while the height shrinks, at most `rounds` times; the lowest placement seen is returned.
    """
    best, best_height = offsets, height(conflicts, offsets)
    for _ in range(rounds):
        raised = raise_all(conflicts, best, best_height)
        if raised is None:
            break
        lowered = first_fit(conflicts, bottom_up(conflicts, raised))
        reached = height(conflicts, lowered)
        if reached >= best_height:
            break
        best, best_height = lowered, reached
    return best


def raise_all(conflicts: Conflicts, offsets: Offsets, ceiling: int) -> Offsets | None:
    """Push-down's mirror image. Only interlocked blocks of several parts can make it fail."""
    raised = conflicts.unplaced()
    ends = [int(at) + size for at, size in zip(offsets, conflicts.sizes, strict=True)]
    for i in sorted(range(conflicts.count), key=lambda i: (-ends[i], i)):
        if conflicts.blocks[i].fixed is None:
            at = conflicts.highest(i, raised, ceiling)
            if at < 0:
                return None
            raised[i] = at
    return raised


def bottom_up(conflicts: Conflicts, offsets: Offsets) -> list[int]:
    """The blocks by address."""
    addresses = [int(at) for at in offsets]
    return sorted(range(conflicts.count), key=lambda i: (addresses[i], i))


def height(conflicts: Conflicts, offsets: Offsets) -> int:
    return max([int(at) + size for at, size in zip(offsets, conflicts.sizes, strict=True)], default=0)


def as_placement(conflicts: Conflicts, offsets: Offsets) -> Placement:
    return placement_of(conflicts.blocks, [int(at) for at in offsets])
