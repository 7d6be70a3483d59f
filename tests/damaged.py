"""Kernels with another piece of C in them, for tests of what finds such damage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mccompile.base.marked import plain
from mccompile.emit.kernels import Printed
from mccompile.plan.ir import Function


def damaged(made: Callable[[Function], Printed], old: str, new: str, times: int = -1) -> Callable[[Function], Printed]:
    """What prints functions, with a piece of each replaced."""

    def other(function: Function) -> Printed:
        found = made(function)
        return replace(found, text=plain(found.text).replace(old, new, times))

    return other
