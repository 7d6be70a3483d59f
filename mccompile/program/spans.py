"""When the loops of a program run."""

from __future__ import annotations

from ..base.records import dataclass
from .ir import Loop, Program, walk


@dataclass(frozen=True)
class Span:
    """A loop, and when it runs: from the time of the loop itself to that of the last item in it, as `walk` counts."""

    loop: Loop
    start: int
    end: int


def loop_spans(program: Program) -> list[Span]:
    """Every loop, inner ones before those around them."""
    times = {id(item): time for time, item in enumerate(walk(program.body))}
    found = [item for item in walk(program.body) if isinstance(item, Loop)]
    return [Span(loop, times[id(loop)], max(times[id(i)] for i in walk([loop]))) for loop in reversed(found)]
