"""A long run as functions of some steps each, by their place in the graph, which compilers put back (MCC_PART).

Invariant: a part names no variable of another one: sizes are read from the model's struct in each.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from ..base.provenance import show
from ..base.records import dataclass
from ..plan.copies import Awaited, Copied
from ..plan.ir import Branch, Halt, Item, Measured, Repeat, RowRegion, Step, walk
from .items import printed_items
from .parts import LONGEST, folded_lines
from .render import comment


@dataclass(frozen=True)
class RunPart:
    name: str
    about: str  # which nodes it computes
    body: str
    may_end: bool  # is there anything in it that ends the run?
    parameters: str = ""  # besides the model

    @property
    def call(self) -> str:
        if not self.may_end:
            return f"    {self.name}(m);"
        return f"    status = {self.name}(m);\n    if (status != MCC_OK) return status;"


def run_parts(name: str, items: Sequence[Item]) -> list[RunPart]:
    """Of the phase of that name; none where it is short."""
    lengths = [folded_lines(printed_items((item,))) for item in items]
    if sum(lengths) <= LONGEST:
        return []
    return [_part(f"{name}_part_{number}", part) for number, part in enumerate(_cut(items, lengths), 1)]


def _cut(items: Sequence[Item], lengths: Sequence[int]) -> Iterator[Sequence[Item]]:
    """Pieces of about the same length; those that no step is in go with the ones before them."""
    each = sum(lengths) / -(-sum(lengths) // (LONGEST * 2 // 3))
    with_steps = [number for number, item in enumerate(items) if [*walk((item,))]]
    begin, taken = 0, 0.0
    for number, length in enumerate(lengths):
        if taken + length / 2 > each and _between(with_steps, begin, number) and with_steps[-1] >= number:
            yield items[begin:number]
            begin, taken = number, taken - each
        taken += length
    yield items[begin:]


def _between(numbers: Sequence[int], begin: int, end: int) -> bool:
    """Is one of the numbers, which grow, in the range?"""
    return bisect_left(numbers, begin) < bisect_left(numbers, end)


def _part(name: str, items: Sequence[Item]) -> RunPart:
    steps = list(walk(items))
    first, last = steps[0], steps[-1]
    about = f"Steps {first.number} to {last.number}: from {show(first.provenance)} to {show(last.provenance)}."
    body = "\n".join(printed_items(items)).rstrip("\n")
    return RunPart(name, comment(about), body, _may_end(items))


def _may_end(items: Sequence[Item]) -> bool:
    for item in items:
        match item:
            case Halt() | Measured() | Copied() | Awaited():
                return True
            case Branch() if _may_end(item.then) or _may_end(item.otherwise):
                return True
            case Repeat() if _may_end(item.items):
                return True
            case Step() if item.failure:
                return True
            case RowRegion():
                for stage in item.stages:
                    if stage.run.failure:
                        return True
    return False
