"""Kernels with another piece of C in them, for tests of what finds such damage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from mccompile.base.marked import plain
from mccompile.emit.kernels import Printed
from mccompile.plan.ir import Function


def damaged(made: Callable[..., Printed], old: str, new: str, times: int = -1) -> Callable[..., Printed]:
    """What prints functions, with a piece of each replaced."""

    def other(function: Function, *more: Any) -> Printed:
        found = made(function, *more)
        parts, own = (plain(text).replace(old, new, times) for text in (found.parts, found.own))
        return replace(found, parts=parts, own=own)

    return other
