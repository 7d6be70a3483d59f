"""Options with a few values, as enums. What users write is read once, where it enters; everybody else compares members.

Invariant: any other value is a WrongUse that names the permitted ones, and the one that was probably meant.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

from .errors import Problem, WrongUse
from .near import meant

Choice = TypeVar("Choice", bound=StrEnum)


def chosen(choices: type[Choice], value: str, what: str, flag: str) -> Choice:
    """The member that is written so. `what`: the complaint, with {!r} for the value."""
    check_known(value, [*choices], what, flag)
    return choices(value)


def check_known(value: str, known: Iterable[str], what: str, flag: str) -> None:
    """Refuses a value that is not among those known; "", if it is, stands for none of them."""
    names = [str(name) for name in known]
    if value not in names:
        there = [name for name in names if name]
        fix = meant(value, there, flag) or f"name one of them, such as {flag} {there[0]}"
        raise WrongUse(Problem(what.format(value), flag, f"it can be {', '.join(there)}", fix))
