"""A memory that is `copied`, the one that steps work in, and a budget for that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.errors import Problem, WrongUse
from ..targets.api import Pool


def with_fast(pools: Sequence[Pool], size: int) -> tuple[Pool, ...]:
    """The memories where steps work in a fast one of at most so many bytes: that one, and another that is copied, where
    none are given."""
    if not pools:
        return Pool("fast", size, 0), Pool("slow", None, 1, copied=True)
    fast = [pool for pool in pools if pool.speed == 0 and not pool.copied]
    if len(fast) != 1:
        why = f"of the memories {', '.join(pool.name for pool in pools)} {len(fast)} are"
        fix = "name one: --mem tcm,fast, or leave out --mem for another one that is copied"
        raise WrongUse(Problem("--budget fast=... needs exactly one memory marked fast", "--budget", why, fix))
    smaller = replace(fast[0], bytes=min(size, size if fast[0].bytes is None else fast[0].bytes))
    return tuple(smaller if pool is fast[0] else pool for pool in pools)


def two_memories(pools: Sequence[Pool], window: int) -> tuple[bool, int | None, int | None, int]:
    """Is one of them copied, the bytes of the near and of the far one (None: as many as are wanted), and as how many
    bytes a copy counts besides its own."""
    far = [pool for pool in pools if pool.copied]
    if not far:
        return False, None, None, 0
    where = f"--mem {far[0].name},copied"
    near = [pool for pool in pools if not pool.copied]
    if len(far) > 1 or len(near) != 1:
        what = "one memory is copied to one other, in which all steps work"
        why = f"there are {len(far)} that are copied, and {len(near)} beside"
        raise WrongUse(Problem(what, where, why, "for two of them: --mem fast=16K,fast --mem psram,copied"))
    if window:
        why = "at most one copy is on its way at a time"
        raise WrongUse(Problem("--weights-window does not go with `copied`", where, why, "leave one of them out"))
    return True, near[0].bytes, far[0].bytes, far[0].latency_bytes
