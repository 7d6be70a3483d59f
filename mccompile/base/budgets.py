"""How much a model may make the compiler do: a few hundred bytes of a file can ask for any amount of work or memory.

Invariant: what grows faster than the file (functions inlined, constants computed, tables) is counted before it is
made, and what is over the budget is refused by a message that names the node. What only makes a model smaller or
quicker (rows played through, phases, trials) is counted too, and left out where it takes more: the model compiles
without.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace

from .records import dataclass


@dataclass(frozen=True)
class Budgets:
    nodes: int = 100_000  # inlined from functions
    depth: int = 100  # of functions and bodies inside each other
    tensor: int = (1 << 40) - 1  # bytes of one tensor: more than any network takes
    dense: int = 1 << 30  # bytes of a sparse tensor made dense
    folded: int = 1 << 28  # bytes of constants computed from others ...
    folded_per_byte: int = 32  # ... besides so many for each byte of constants in the file
    table: int = 1 << 20  # entries of a table that follows from attributes, such as the positions of Resize
    reach: int = 1 << 31  # elements that a window reaches over
    phases: int = 1 << 12  # convolutions that a transposed one becomes
    rows: int = 600_000  # rows of chains that are played through
    trials: int = 32  # plans that are made on trial to choose kernels ...
    tried_calls: int = 400  # ... and calls in all of them


_DEFAULT = Budgets()
_BUDGETS: ContextVar[Budgets] = ContextVar("budgets", default=_DEFAULT)


def budgets() -> Budgets:
    return _BUDGETS.get()


@contextmanager
def limited(**changes: int) -> Iterator[Budgets]:
    """Other budgets, for as long as the context lasts."""
    token = _BUDGETS.set(replace(budgets(), **changes))
    try:
        yield budgets()
    finally:
        _BUDGETS.reset(token)
