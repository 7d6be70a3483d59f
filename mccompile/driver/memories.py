"""A memory that is `copied`, and the one that steps work in."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.errors import Problem, WrongUse
from ..targets.api import Pool


def two_memories(pools: Sequence[Pool], window: int) -> tuple[bool, int | None, int | None]:
    """Is one of them copied, and the bytes of the near and of the far one; None: as many as are wanted."""
    far = [pool for pool in pools if pool.copied]
    if not far:
        return False, None, None
    where = f"--mem {far[0].name},copied"
    near = [pool for pool in pools if not pool.copied]
    if len(far) > 1 or len(near) != 1:
        what = "one memory is copied to one other, in which all steps work"
        why = f"there are {len(far)} that are copied, and {len(near)} beside"
        raise WrongUse(Problem(what, where, why, "for two of them: --mem fast=16K,fast --mem psram,copied"))
    if window:
        why = "at most one copy is on its way at a time"
        raise WrongUse(Problem("--weights-window does not go with `copied`", where, why, "leave one of them out"))
    return True, near[0].bytes, far[0].bytes
