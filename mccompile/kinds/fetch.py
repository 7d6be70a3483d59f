"""fetch: an input whose rows a function of the program's gives, when they are wanted: from the first to the last, each
once.

Invariant: a program fetches an input by one call, which runs once in every run: never in a loop or a branch. That call
makes each row once, in order, all at once or as a stage of a chain.
"""

from __future__ import annotations

from ..base.records import dataclass
from .api import MovedRows


@dataclass(frozen=True)
class Fetch(MovedRows):
    pass
