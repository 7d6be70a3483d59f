"""When and where buffers hold something, for maps and reports."""

from __future__ import annotations

from ..base.records import dataclass


@dataclass(frozen=True)
class Life:
    name: str
    start: int
    end: int
    low: int
    high: int
    base: str  # of an arena
    at_peak: bool = False  # alive at the first moment when most is, in its memory
    idle: tuple[tuple[int, int], ...] = ()  # times in between when others may lie there

    def at(self, time: int) -> bool:
        """Does it hold something then?"""
        return self.start <= time < self.end and not any(begin <= time < end for begin, end in self.idle)
