"""Passes are transactions: where an optional one fails, or the verifier rejects what it made, the model is compiled
anew from the graph that was loaded, without that pass.

Nothing has to be undone in what passes change in place (IRs, facts, what contexts remember): all of it is made anew, so
what comes out is what `--without` gives. Where something that compiling needs fails, an optional pass in front of it
may be at fault: it is looked for by halves. Errors of the user's, and what comes from outside, are not among a pass's.

A search compiles many plans, and prints only the one that it finds. Where that fails, a pass may be at fault as well:
it searches again, among plans that are printed when they are compiled.

Invariant: a failure that no choice of passes avoids is raised as it was.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TypeVar

from ..base.errors import DEBUG, MccError, is_strict
from ..emit.package import Package
from ..fitting import Point
from ..passes.api import PassManager, SkippedPass

OUTSIDE = (MccError, MemoryError, OSError, RecursionError)

Made = TypeVar("Made")


class PassFailed(Exception):
    """An optional pass raised an error (the cause), or the verifier did behind it."""

    def __init__(self, name: str, cause: Exception) -> None:
        super().__init__(f"{name}: {cause}")
        self.name, self.cause = name, cause


def recovering(attempt: Callable[[tuple[SkippedPass, ...]], Made], optional: Sequence[str]) -> Made:
    """What `attempt` gives with as few passes left out as it takes; `optional` are the names of those that may be, in
    their order."""
    left: tuple[SkippedPass, ...] = ()
    while True:
        try:
            made = attempt(left)
            return made if len(left) < 2 else attempt(_fewest(attempt, left))
        except PassFailed as failed:
            if is_strict():
                raise failed.cause from None
            name, cause = failed.name, failed.cause
        except OUTSIDE:
            raise
        except Exception as error:
            names = [name for name in optional if name not in {each.name for each in left}]
            name = "" if is_strict() else _at_fault(attempt, left, names)
            if not name:
                raise
            cause = error
        if os.environ.get(DEBUG):
            sys.stderr.write("".join(traceback.format_exception(cause)))
        left = (*left, SkippedPass(name, _in_one_line(cause)))


def printed(package: Package) -> Package:
    """The package, whose files are there now; in strict mode when they are asked for, as no pass is left out then."""
    if not is_strict():
        package.output()
    return package


def printable(search: Callable[[bool], Point]) -> Point:
    """What `search` finds. It is told whether each plan has to be printed."""
    found = search(False)
    try:
        printed(found.package)
    except OUTSIDE:
        raise
    except Exception:
        return search(True)
    return found


@contextmanager
def blamed(manager: PassManager) -> Iterator[None]:
    """What fails meanwhile is the fault of the optional pass that runs, if one does."""
    try:
        yield
    except OUTSIDE:
        raise
    except Exception as error:
        if manager.running:
            raise PassFailed(manager.running, error) from error
        raise


def _fewest(
    attempt: Callable[[tuple[SkippedPass, ...]], object], left: tuple[SkippedPass, ...]
) -> tuple[SkippedPass, ...]:
    """Without those that only stumbled over what another one had broken."""
    for each in left:
        fewer = tuple(other for other in left if other is not each)
        with suppress(Exception):
            attempt(fewer)
            left = fewer
    return left


def _in_one_line(error: Exception) -> str:
    """What an error says first: of a verifier's, what is broken and the first problem."""
    lines = [line.strip() for line in str(error).splitlines()]
    return " ".join([f"{type(error).__name__}:", *lines[:2]]).rstrip(":")


def _at_fault(
    attempt: Callable[[tuple[SkippedPass, ...]], Made], left: tuple[SkippedPass, ...], names: list[str]
) -> str:
    """The last of the first passes with which something fails; empty if it fails without any of them."""

    def works(count: int) -> bool:
        """With the first passes and no others."""
        try:
            attempt((*left, *(SkippedPass(name, "") for name in names[count:])))
        except OUTSIDE:
            raise
        except Exception:
            return False
        return True

    low, high = 0, len(names)
    if not high or not works(low):
        return ""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if works(middle) else (low, middle)
    return names[low]
