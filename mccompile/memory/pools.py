"""Which block lies in which of several memories: hot and small ones in the fast ones, all others in the last.

A memory is filled in some order of the blocks: a block is taken if all that is alive together still fits. Then the
planner places what was taken, and the last ones taken go back until its placement fits as well. Blocks that no later
memory can hold come first. Where the last memory overflows, further orders are tried, which save bytes, not time.

Invariant: no memory but the last holds more than its limit, every block lies in exactly one, and the same blocks give
the same shares everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from mccompile.memory.interval import Block, Placement, spans_of

Planner = Callable[[Sequence[Block]], Placement]


@dataclass(frozen=True, slots=True)
class Share:
    """What one memory holds: blocks by their indices, and their placement in it."""

    members: tuple[int, ...]
    placement: Placement


def share_out(
    blocks: Sequence[Block], heat: Sequence[int], limits: Sequence[int | None], planner: Planner
) -> list[Share]:
    """A share per limit (None: as much as is wanted), the fastest memory first. `heat` is how many bytes of each block
    are read and written. Where the last share is above its limit, nothing that was tried fits."""
    everything = range(len(blocks))
    area = [sum((part.end - part.start) * (part.high - part.low) for part in block.parts) for block in blocks]
    ways = (
        sorted(everything, key=lambda i: (-heat[i] / max(blocks[i].size, 1), blocks[i].size, i)),
        sorted(everything, key=lambda i: (-blocks[i].size, i)),
        sorted(everything, key=lambda i: (-area[i], i)),
    )
    found: list[Share] = []
    for way in ways:
        shares = _filled(blocks, way, limits, planner)
        if not found or shares[-1].placement.size < found[-1].placement.size:
            found = shares
        if limits[-1] is None or shares[-1].placement.size <= limits[-1]:
            return shares
    return found


def _filled(
    blocks: Sequence[Block], order: Sequence[int], limits: Sequence[int | None], planner: Planner
) -> list[Share]:
    """The shares if every memory but the last takes what it can, in this order."""
    shares: list[Share] = []
    left = list(order)
    for number, limit in enumerate(limits):
        later = limits[number + 1 :]
        taken = left
        if later and limit is not None:
            room = None if None in later else max(each for each in later if each is not None)
            first = [i for i in left if room is not None and blocks[i].size > room]
            taken = _alive_within(blocks, [*first, *(i for i in left if i not in set(first))], limit)
            share = _most(blocks, taken, limit, planner)
        else:
            share = _placed(blocks, taken, planner)
        shares.append(share)
        held = set(share.members)
        left = [i for i in left if i not in held]
    return shares


def _most(blocks: Sequence[Block], order: Sequence[int], limit: int, planner: Planner) -> Share:
    """As many of the first blocks as the planner places within the limit: it is asked a few times, however many blocks
    go back, by steps that double until it succeeds and then halve."""
    share, count, over = _placed(blocks, order, planner), len(order), len(order)
    while share.placement.size > limit:
        over, count = count, max(0, 2 * count - len(order) if count < len(order) else count - 1)
        share = _placed(blocks, order[:count], planner)
    while over - count > 1:
        tried = _placed(blocks, order[: (count + over) // 2], planner)
        if tried.placement.size > limit:
            over = len(tried.members)
        else:
            share, count = tried, len(tried.members)
    return share


def _alive_within(blocks: Sequence[Block], order: Sequence[int], limit: int) -> list[int]:
    """The blocks that are taken, one after the other, as long as never more than so many bytes are alive together."""
    alive = np.zeros(max((block.end for block in blocks), default=0), np.int64)
    taken = []
    for index in order:
        spans = spans_of(blocks[index], blocks[index].align)
        if blocks[index].size > limit or any(
            span.bytes and alive[span.start : span.end].max() + span.bytes > limit for span in spans
        ):
            continue
        for span in spans:
            alive[span.start : span.end] += span.bytes
        taken.append(index)
    return taken


def _placed(blocks: Sequence[Block], members: Sequence[int], planner: Planner) -> Share:
    """In the order of the blocks, so that one memory for all is planned as if there were no others."""
    ordered = tuple(sorted(members))
    return Share(ordered, planner([blocks[i] for i in ordered]))
