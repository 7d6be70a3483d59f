"""Loops of calls whose operands lie across the result."""

from __future__ import annotations

from ..base.records import dataclass
from .loops import Loop, Nest


@dataclass(frozen=True)
class Across:
    """Loops, and along which of them elements of the result (I) and of operands (J) lie side by side."""

    nest: Nest
    at_i: int
    at_j: int

    @property
    def i(self) -> Loop:
        return self.nest.loops[self.at_i]

    @property
    def j(self) -> Loop:
        return self.nest.loops[self.at_j]

    @property
    def around(self) -> list[int]:
        return [number for number in range(len(self.nest.loops)) if number not in (self.at_i, self.at_j)]
