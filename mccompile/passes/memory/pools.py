"""Distributes buffers among the memories of a target: those that a model accesses most per byte go into the fast ones.

Buffers that overlap by decision of bufferize stay together. Invariant: what comes back fits, or it is an error that
says what does not, and how much would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...base.dims import upper
from ...base.errors import CheckFailed, Problem
from ...memory.interval import Block, peak
from ...memory.pools import Planner, Share, share_out
from ...memory.push_down import push_down
from ...program.ir import Buffer, Item, Loop, Program, View, bodies, reads, scratches, writes
from ...targets.api import Pool

Owners = Mapping[Buffer, tuple[int, int]]  # of every buffer its block, and its place in that


def share_pools(
    program: Program, blocks: Sequence[Block], owners: Owners, pools: Sequence[Pool], planner: Planner
) -> list[Share]:
    """A share of the blocks for every pool; the fastest pool comes first."""
    if any(pool.copied for pool in pools):
        return [_those(program.name, blocks, owners, pool, planner) for pool in pools]
    heat = _heat(program.body, blocks, owners)
    limits = [pool.bytes for pool in pools]
    shares = share_out(blocks, heat, limits, planner)
    limit, needed = limits[-1], shares[-1].placement.size
    if limit is None or needed <= limit:
        return shares
    why = _why(blocks, pools, shares)
    while (size := share_out(blocks, heat, [*limits[:-1], needed], planner)[-1].placement.size) > needed:
        needed = size  # the other pools may be filled in another way where the last one is larger
    last = pools[-1].name
    fix = f"with --mem {last}={needed} it fits; so it may with a larger pool before it, --rows auto or --prefer ram"
    raise CheckFailed(Problem(f"pool {last} of {limit} bytes is too small", program.name, why, fix))


def _those(name: str, blocks: Sequence[Block], owners: Owners, pool: Pool, planner: Planner) -> Share:
    """The blocks of all buffers that are far, or of all that are not. They were chosen such that push_down places them
    within the limit."""
    members = tuple(sorted({index for buffer, (index, _) in owners.items() if buffer.far == pool.copied}))
    inside = [blocks[index] for index in members]
    placement = planner(inside)
    if pool.bytes is not None and placement.size > pool.bytes:
        placement = push_down(inside)
    if pool.bytes is not None and placement.size > pool.bytes:
        why = "workspaces of several workers may take more than one worker needs"
        fix = f"with --mem {pool.name}={placement.size} it fits"
        raise CheckFailed(Problem(f"pool {pool.name} of {pool.bytes} bytes is too small", name, why, fix))
    return Share(members, placement)


def _why(blocks: Sequence[Block], pools: Sequence[Pool], shares: Sequence[Share]) -> str:
    """What each pool would hold."""
    sentences = []
    for pool, share in zip(pools, shares, strict=True):
        inside = [blocks[index] for index in share.members]
        names = peak(inside).names
        alive = ", ".join(f"{block.name} {block.size}" for block in inside if block.name in names) or "nothing"
        sentences.append(f"{pool.name} would hold {share.placement.size} bytes (at its peak {alive})")
    return "; ".join(sentences)


def _heat(body: Iterable[Item], blocks: Sequence[Block], owners: Owners) -> list[int]:
    """Bytes of each block that a run reads and writes, those of workspaces twice; what runs in a loop counts as often
    as it does, and once where only the run knows."""
    heat = [0] * len(blocks)

    def touch(buffer: Buffer, nbytes: int) -> None:
        if buffer in owners:
            heat[owners[buffer][0]] += nbytes

    def count(items: Iterable[Item], times: int) -> None:
        for item in items:
            for view in (*reads(item), *writes(item)):
                touch(view.buffer, times * view.type.max_bytes)
            for scratch in scratches(item):
                touch(scratch, 2 * times * scratch.max_bytes)
            often = upper(item.trips) if isinstance(item, Loop) and not isinstance(item.trips, View) else 1
            for inner in bodies(item):
                count(inner, times * often)

    count(body, 1)
    return heat
