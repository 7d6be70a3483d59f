"""Push-down: first learn who lies above whom, then let everything sink.

One start (`push_down_single`, after MegCC) takes two steps:
1. Replay allocations and frees over a stretchable address space. A request takes the smallest gap that holds it; if
   none does, the largest gap is stretched until it fits, which lifts everything above. The addresses mean nothing yet;
   all that is kept is the order in which the blocks lie.
2. The address of a block = the highest end among the conflicting blocks below it, aligned.

One start misses the optimum on a third of real networks. `push_down` therefore tries many: eight orders of the blocks
(the one from step 1, by size, by size x life, ...), first fit and best fit for each; then it settles them, best first:
presses all blocks up against the top and lets them sink again. It stops at once when the bound
(`interval.lower_bound`) is met, which it usually is; otherwise `exhaust` tries everything (few blocks) or `repair`
improves the best placements found (many).

Invariant: the result depends on the blocks and their order only: nothing is timed, nothing walks an unordered set, and
effort is a count of work, where one unit is one visit to one edge of the conflict graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from mccompile.memory import placing
from mccompile.memory.conflicts import Conflicts, ListedConflicts, Offsets, conflicts_of
from mccompile.memory.exhaust import exhaust
from mccompile.memory.interval import Block, Placement, align_up, lower_bound
from mccompile.memory.repair import repair

SETTLE_ROUNDS = 4
NAMED_STARTS = 3  # push_down_single, greedy by size, best fit: always tried
START_WORK = 3_000_000
REPAIR_WORK = 2_000_000
FEW_BLOCKS = 10  # few enough to try everything
EXHAUST_WORK = 10_000
POOL = 4  # placements that repairs set out from


def push_down_single(blocks: Sequence[Block]) -> Placement:
    """One start: the smallest plan that a single pass over the blocks finds."""
    placing.check_fixed(blocks)
    conflicts = conflicts_of(blocks)
    return placing.as_placement(conflicts, placing.stack(conflicts, stretched_order(blocks)))


def push_down(blocks: Sequence[Block]) -> Placement:
    """Many starts, then counted repairs; if these miss the bound, again without the blocks that are always alive. Never
    larger than `push_down_single`, best fit or greedy by size."""
    found, always = _pushed_down(tuple(blocks)), _always_alive(blocks)
    if not always or len(always) == len(blocks) or found.size <= lower_bound(blocks):
        return found
    return min(found, _above(blocks, always), key=lambda placement: placement.size)


def _always_alive(blocks: Sequence[Block]) -> list[int]:
    """Blocks such as states and weights that learn, which are whole from the first moment to the last one."""
    if any(block.fixed is not None for block in blocks):
        return []
    begin, end = min((b.start for b in blocks), default=0), max((b.end for b in blocks), default=0)
    whole = [any((p.start, p.end, p.high - p.low) == (begin, end, b.size) for p in b.parts) for b in blocks]
    return sorted((index for index, is_whole in enumerate(whole) if is_whole), key=lambda i: (-blocks[i].align, i))


def _above(blocks: Sequence[Block], always: Sequence[int]) -> Placement:
    """Those that are always alive at the bottom, where they part no room: other blocks fit above them as well as
    anywhere."""
    offsets, top = dict[int, int](), 0
    for index in always:
        offsets[index] = align_up(top, blocks[index].align)
        top = offsets[index] + blocks[index].size
    others = [index for index in range(len(blocks)) if index not in offsets]
    base = align_up(top, max(blocks[index].align for index in others))
    placed = _pushed_down(tuple(blocks[index] for index in others))
    offsets |= {index: base + offset for index, offset in zip(others, placed.offsets, strict=True)}
    return Placement(tuple(offsets[index] for index in range(len(blocks))), base + placed.size)


@lru_cache(maxsize=100)  # who looks for what fits a budget asks for the same again
def _pushed_down(blocks: tuple[Block, ...]) -> Placement:
    placing.check_fixed(blocks)
    conflicts = conflicts_of(blocks)
    bound = lower_bound(blocks)
    once = _work_of_a_pass(conflicts)
    found: dict[tuple[int, ...], tuple[int, Offsets]] = {}
    work = 0
    for number, offsets in enumerate(_starts(conflicts), 1):
        reached = placing.height(conflicts, offsets)
        if reached <= bound:
            return placing.as_placement(conflicts, offsets)
        found.setdefault(tuple(placing.bottom_up(conflicts, offsets)), (reached, offsets))
        work += once
        if work > START_WORK and number >= NAMED_STARTS:
            break
    settled: list[tuple[int, Offsets]] = []
    for reached, offsets in sorted(found.values(), key=lambda entry: entry[0]):
        if work <= START_WORK:
            offsets = placing.settle(conflicts, offsets, SETTLE_ROUNDS)
            reached = placing.height(conflicts, offsets)
            work += 3 * once
        if reached <= bound:
            return placing.as_placement(conflicts, offsets)
        settled.append((reached, offsets))
    pool = [offsets for _, offsets in sorted(settled, key=lambda entry: entry[0])[:POOL]]
    if isinstance(conflicts, ListedConflicts) and len(blocks) <= FEW_BLOCKS:
        best, proven = exhaust(conflicts, pool[0], bound, EXHAUST_WORK)
        if proven:
            return placing.as_placement(conflicts, best)
        pool.insert(0, best)
    best = repair(conflicts, pool, bound, REPAIR_WORK) if once <= REPAIR_WORK else pool[0]
    return placing.as_placement(conflicts, best)


def _starts(conflicts: Conflicts) -> Iterator[Offsets]:
    """First those that are planners of their own, so that none of them is ever better; then the others."""
    blocks = conflicts.blocks
    everything = range(conflicts.count)
    stretched = stretched_order(blocks)
    by_size = sorted(everything, key=lambda i: (-blocks[i].size, blocks[i].start, i))
    by_start = sorted(everything, key=lambda i: (blocks[i].start, i))
    yield placing.stack(conflicts, stretched)
    yield placing.first_fit(conflicts, by_size)
    yield placing.best_fit(conflicts, by_start)
    yield placing.first_fit(conflicts, stretched)
    yield placing.best_fit(conflicts, stretched)
    yield placing.best_fit(conflicts, by_size)
    yield placing.first_fit(conflicts, by_start)
    life = [block.end - block.start for block in blocks]
    crowd = _crowds(blocks)
    orders = (
        sorted(everything, key=lambda i: (-crowd[i], -blocks[i].size, i)),
        sorted(everything, key=lambda i: (-blocks[i].size * life[i], i)),
        sorted(everything, key=lambda i: (-life[i], -blocks[i].size, i)),
        sorted(everything, key=lambda i: (-conflicts.degrees[i], -blocks[i].size, i)),
        sorted(everything, key=lambda i: (-blocks[i].end, -blocks[i].size, i)),
    )
    for order in orders:
        yield placing.first_fit(conflicts, order)
        yield placing.best_fit(conflicts, order)


def stretched_order(blocks: Sequence[Block]) -> list[int]:
    """Step 1: the blocks in the order of their addresses in a stretchable space.

    A block counts as its whole rectangle here. Where it died, the order against later blocks no longer matters, so
    only the order of blocks that live together is meaningful; stretching never changes it.
    """
    in_time = sorted((i for i, b in enumerate(blocks) if b.fixed is None), key=lambda i: (blocks[i].start, i))
    address = np.zeros(len(in_time), dtype=np.int64)
    none = np.empty(0, dtype=np.int64)
    starts, ends, until = none, none, none  # the live blocks by address
    for seen, i in enumerate(in_time):
        block = blocks[i]
        size = align_up(block.size, block.align)
        live = until > block.start
        starts, ends, until = starts[live], ends[live], until[live]
        bottoms = np.concatenate(([0], ends))
        gaps = starts - bottoms[:-1]
        fitting = np.flatnonzero(gaps >= size)
        if len(fitting):
            at = int(fitting[np.argmin(gaps[fitting])])
        elif len(gaps) and gaps.max() > 0:
            at = int(np.argmax(gaps))
            lift = size - int(gaps[at])
            address[:seen] += np.where(address[:seen] >= starts[at], lift, 0)
            starts[at:] += lift
            ends[at:] += lift
        else:
            at = len(gaps)
        bottom = int(bottoms[at])
        address[seen] = bottom
        starts, ends = np.insert(starts, at, bottom), np.insert(ends, at, bottom + size)
        until = np.insert(until, at, block.end)
    return [in_time[rank] for rank in np.argsort(address, kind="stable")]


def _crowds(blocks: Sequence[Block]) -> list[int]:
    """For each block the largest sum of block sizes that live together at some moment of its life ("breadth")."""
    times = np.array(sorted({time for block in blocks for time in (block.start, block.end)}), dtype=np.int64)
    first = np.searchsorted(times, [block.start for block in blocks])
    last = np.searchsorted(times, [block.end for block in blocks])
    sizes = [block.size for block in blocks]
    change = np.zeros(len(times) + 1, dtype=np.int64)
    np.add.at(change, first, sizes)
    np.subtract.at(change, last, sizes)
    live = np.cumsum(change)
    return [int(live[a:b].max()) for a, b in zip(first.tolist(), last.tolist(), strict=True)]


def _work_of_a_pass(conflicts: Conflicts) -> int:
    """Placing every block once visits each edge; a block and a question put to numpy cost as much as many edges."""
    if isinstance(conflicts, ListedConflicts):
        return 8 * conflicts.count + 2 * conflicts.pairs
    return 200 * conflicts.count + conflicts.pairs // 4
