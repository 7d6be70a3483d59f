"""Errors a user can act on: what went wrong, where, why, and how to fix it.

Invariant: every failure caused by the user's input is a `MccError`; its `exit_code` is the process's exit code and
its text is complete (the CLI adds nothing). Anything else that escapes is a bug in mccompile.
"""

from __future__ import annotations

import inspect
import os
import traceback
import warnings
from collections.abc import Iterable
from enum import IntEnum

from .records import dataclass

DEBUG = "MCCOMPILE_DEBUG"  # an environment variable: tracebacks of errors that are bugs
STRICT = "MCCOMPILE_STRICT"  # another one: what users get in spite of a bug is an error, as the project's tests want


def is_strict() -> bool:
    return bool(os.environ.get(STRICT))


class Exit(IntEnum):
    """The exit codes of the command; docs/cli.md has them as a table."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Exit:
        found = int.__new__(cls, code)
        found._value_, found.meaning = code, meaning
        return found

    DONE = 0, "done"
    FAILED = 1, "a check failed, or a budget is exceeded"
    WRONG_USE = 2, "the command line, an option, the environment or the output folder is at fault"
    UNSUPPORTED = 3, "the model is valid, but something in it cannot be compiled, or a size is missing"
    BAD_FILE = 4, "a file cannot be read, is not what it claims to be, or contradicts itself"
    BUG = 70, "a bug in mccompile"
    INTERRUPTED = 130, "interrupted (Ctrl-C)"
    CLOSED = 141, "whoever read the output closed it"


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong. `where`, `why` and `fix` may be empty, and may span lines."""

    what: str
    where: str = ""
    why: str = ""
    fix: str = ""

    def render(self) -> str:
        lines = [f"error: {self.what}"]
        for label, text in (("where", self.where), ("why", self.why), ("fix", self.fix)):
            for number, line in enumerate(text.splitlines()):
                lines.append(f"  {label if number == 0 else '':<5}  {line}")
        return "\n".join(lines)


class MccWarning(UserWarning):
    """What may be a mistake of the user's, and what figure says so; the command prints it as a line."""


def warn(text: str) -> None:
    """Warns, at the line of the program that called this package."""
    packages = [
        frame.f_globals.get("__name__", "").partition(".")[0]
        for frame, _ in traceback.walk_stack(inspect.currentframe())
    ]
    outermost = len(packages) - packages[::-1].index(__name__.partition(".")[0])
    warnings.warn(MccWarning(text), stacklevel=outermost + 1)


class MccError(Exception):
    """One or more problems. Subclasses differ in the exit code only."""

    exit_code = Exit.WRONG_USE

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            raise ValueError("an error needs at least one problem")
        self.problems = problems
        super().__init__("\n".join(problem.render() for problem in problems))

    def __reduce__(self) -> tuple[type[MccError], tuple[Problem, ...]]:
        return type(self), self.problems  # what workers raise is what arrives here


class CheckFailed(MccError):
    """A check did not pass, or a budget is exceeded."""

    exit_code = Exit.FAILED


class WrongUse(MccError):
    """The command line, an option, the environment or the output folder is at fault."""

    exit_code = Exit.WRONG_USE


class UnsupportedModel(MccError):
    """The model is valid, but something in it cannot be compiled."""

    exit_code = Exit.UNSUPPORTED


class BadFile(MccError):
    """A file cannot be read, is not what it claims to be, or contradicts itself."""

    exit_code = Exit.BAD_FILE


class InternalError(Exception):
    """An invariant of mccompile does not hold: a bug, never the user's fault."""


def raise_all(error: type[MccError], problems: Iterable[Problem]) -> None:
    """Raise one error that holds all problems, or return when there are none."""
    found = tuple(problems)
    if found:
        raise error(*found)
