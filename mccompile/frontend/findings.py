"""Everything that is wrong with a model, collected so that the user sees all of it at once.

Invariant: findings that say the same of several nodes become one problem with a line for each node.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NoReturn

from ..base.budgets import budgets
from ..base.errors import BadFile, Problem, UnsupportedModel
from ..base.tensor import TensorType
from ..graph.ir import Invalid, Refused, Unsupported, Value
from ..graph.refusals import Undeclared
from ..ops.control_flow import RanksDiffer

_NODES_SHOWN = 8
_PROBLEMS_SHOWN = 20


class Misfit(Invalid):
    """The sizes of a node's operands do not fit together."""


class Findings:
    def __init__(self, sized: bool = False) -> None:
        self.sized = sized  # does the user say sizes?
        self.only_misfits = True
        self.undeclared = False  # would a declared shape help?
        self.only_ranks = True
        self.bounds: dict[str, tuple[int, ...]] = {}  # what --bound could say
        self.ranks: dict[str, int | None] = {}  # Ifs whose branches differ in rank, and the branch that is declared
        self._places: dict[tuple[str, str, str], list[str]] = {}  # (what, why, fix) -> where
        self._invalid = False

    def add(self, what: str, where: str, refused: Refused) -> None:
        """`Invalid` is a fault of the file, any other refusal a limit of this compiler."""
        invalid = isinstance(refused, Invalid)
        self._invalid |= invalid
        self.only_misfits &= isinstance(refused, Misfit)
        self.undeclared |= isinstance(refused, Undeclared)
        self.only_ranks &= isinstance(refused, RanksDiffer)
        self.bounds |= [refused.bound] if refused.bound else []
        default = "correct the model, or export it again" if invalid else "change the model to do without it"
        if invalid and self.sized:
            default = f"give other sizes with --dim or --shape, or {default}"
        fix = refused.fix or default
        places = self._places.setdefault((what, refused.why, fix), [])
        if where not in places:
            places.append(where)

    def check_bytes(self, values: Iterable[Value], where: str) -> None:
        """Adds what is too large for any machine."""
        for value in values:
            try:
                check_bytes("it", value.type)
            except Unsupported as refused:
                self.add("unsupported input", where, refused)

    @property
    def first_reason(self) -> str:
        """Why the first thing that is wrong is so; empty where nothing is."""
        for (_, why, _), places in self._places.items():
            return f"{places[0]}: {why}"
        return ""

    def take(self, other: Findings) -> None:
        """What was found apart."""
        for key, places in other._places.items():
            mine = self._places.setdefault(key, [])
            mine += [place for place in places if place not in mine]
        self._invalid |= other._invalid
        self.only_misfits &= other.only_misfits
        self.undeclared |= other.undeclared
        self.only_ranks &= other.only_ranks
        self.ranks |= other.ranks
        self.bounds |= other.bounds

    def stop_if_any(self) -> None:
        if self._places:
            self.stop()

    def stop(self) -> NoReturn:
        """Raises one error with all that was found."""
        problems = [
            Problem(what, "\n".join(_first(where, _NODES_SHOWN)), why, fix)
            for (what, why, fix), where in list(self._places.items())[:_PROBLEMS_SHOWN]
        ]
        hidden = len(self._places) - len(problems)
        if hidden:
            problems.append(Problem(f"{hidden} more problems of other kinds"))
        raise BadFile(*problems) if self._invalid else UnsupportedModel(*problems)


def _first(places: list[str], limit: int) -> list[str]:
    hidden = len(places) - limit
    return [*places[:limit], f"and {hidden} more"] if hidden > 0 else places


def check_bytes(what: str, type: TensorType) -> None:
    """Refuses a tensor that no machine has the memory for, and one with fewer elements than none."""
    if any(isinstance(dim, int) and dim < 0 for dim in type.shape):
        raise Invalid(f"{what} would be {type}, which has a negative size")
    nbytes, most = type.max_bytes, budgets().tensor
    if nbytes > most:
        why = f"{what} is {type}: {nbytes} bytes, {most} are the most that one tensor may take"
        raise Unsupported(why, "correct the sizes that it follows from, or bound them with --dim, --shape or --bound")
