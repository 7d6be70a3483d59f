"""Errors a user can act on: what went wrong, where, why, and how to fix it.

Invariant: every failure caused by the user's input is a `MccError`; its `exit_code` is the process's exit code and
its text is complete (the CLI adds nothing). Anything else that escapes is a bug in mccompile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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


class MccError(Exception):
    """One or more problems. Subclasses differ in the exit code only."""

    exit_code = 2

    def __init__(self, *problems: Problem) -> None:
        if not problems:
            raise ValueError("an error needs at least one problem")
        self.problems = problems
        super().__init__("\n".join(problem.render() for problem in problems))


class CheckFailed(MccError):
    """A check did not pass, or a budget is exceeded."""

    exit_code = 1


class WrongUse(MccError):
    """The command line, an option, the environment or the output folder is at fault."""

    exit_code = 2


class UnsupportedModel(MccError):
    """The model is valid, but something in it cannot be compiled."""

    exit_code = 3


class BadFile(MccError):
    """A file cannot be read, is not what it claims to be, or contradicts itself."""

    exit_code = 4


class InternalError(Exception):
    """An invariant of mccompile does not hold: a bug, never the user's fault."""


def raise_all(error: type[MccError], problems: Iterable[Problem]) -> None:
    """Raise one error that holds all problems, or return when there are none."""
    found = tuple(problems)
    if found:
        raise error(*found)
