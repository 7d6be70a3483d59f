"""Which sequences of calls run row by row, and which tensors are stored in the far memory, so that the fewest bytes are
copied: shortest paths through the program.

A place on a path is a position in the program and the set of tensors alive there that are far. A step is one item, or a
run of calls row by row; it is possible where the near memory holds what lives beside it, its rings and its copies, and
the far memory all that is far. Of paths that copy as much, the one with the fewest calls row by row is taken. Where
copies have a latency, each counts as what is copied in that time.

A path where every step takes as little as it ever could (no workspaces, results over operands that die) copies no more
than any plan of these steps: a lower bound, unless places were too many to follow all of them.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable, Iterator
from dataclasses import field, replace

from ...base.records import dataclass
from ...kernels.api import Needs
from ...program.ir import Buffer, Call, Item
from ..api import Context
from ..rows.row_chains import LONGEST, Chain
from .segments import Segment, Segments
from .tensors import Tensors, touched

MOST = 48  # sets of far tensors that are followed at a position
CHOICES = 6  # tensors of which all subsets are tried; of more, all or none of them


@dataclass(frozen=True)
class Step:
    """`first`..`last`, with the tensors that are far then, of those that it touches."""

    first: int
    last: int
    far: frozenset[Buffer]
    by_rows: bool


@dataclass(frozen=True)
class Path:
    cost: int = 0  # bytes that are copied, and each copy as what is copied in the time that it takes besides
    joined: int = 0
    steps: tuple[Step, ...] = ()
    far: frozenset[Buffer] = frozenset()  # of all tensors

    @property
    def order(self) -> tuple[int, int, int]:
        return self.cost, self.joined, len(self.far)


@dataclass
class MemoryLimits:
    """Bytes of both memories; None: as many as are wanted. `short` is what positions would need of the near one at
    least where it is too small, `far_short` the same of the far one where the near one is large enough."""

    near: int | None
    far: int | None
    short: dict[int, int] = field(default_factory=dict)
    far_short: dict[int, int] = field(default_factory=dict)

    def holds(self, near: int, far: int, at: int) -> bool:
        if self.near is not None and near > self.near:
            self.short[at] = min(near, self.short.get(at, near))
            return False
        if self.far is not None and far > self.far:
            self.far_short[at] = min(far, self.far_short.get(at, far))
            return False
        return True


class Router:
    def __init__(self, tensors: Tensors, segments: Segments, context: Context) -> None:
        self.tensors, self.segments, self.context = tensors, segments, context
        self.least = False  # steps take as little as they ever could
        self.complete = True  # were all places followed?
        self.below = sys.maxsize  # what paths cost which are looked for

    def copied(self, path: Path) -> int:
        """Bytes."""
        steps = (self.segments.get(step.first, step.last, step.far, step.by_rows) for step in path.steps)
        return sum(segment.copied for segment in steps if segment is not None)

    def bound(self, room: MemoryLimits, found: int) -> int | None:
        """Bytes that any path copies at least, if one is known that copies so many; None where that is not known."""
        self.least, self.complete, self.below = True, True, found
        path = self.best(replace(room, short={}, far_short={}))
        self.least, self.below = False, sys.maxsize
        least = found if path is None else path.cost
        return least if self.complete else None

    def best(self, room: MemoryLimits) -> Path | None:
        """The path that copies least; None where nothing fits."""
        count = len(self.tensors.program.body)
        places: list[dict[frozenset[Buffer], Path]] = [{} for _ in range(count + 1)]
        for far in self._subsets(b for b in self.tensors.inputs if b in self.tensors.may_be_far):
            places[0][far & {*self.tensors.alive[0]}] = Path(far=far)
        for first in range(count):
            ways = sorted(places[first].items(), key=lambda way: way[1].order)[:MOST]
            self.complete &= len(places[first]) <= MOST
            for last in range(first, min(count, first + LONGEST)):
                reached = False
                for far, path in ways:
                    for step, result_far in self._steps(first, last, far):
                        segment = self._possible(step, far, result_far, room)
                        if segment is None:
                            continue
                        reached = True
                        cost = path.cost + self._cost(segment)
                        if cost >= self.below:
                            continue
                        joined = path.joined + (last - first if step.by_rows else 0)
                        made = Path(cost, joined, (*path.steps, step), path.far | result_far)
                        now = (far | result_far) & {*self.tensors.alive[last + 1]}
                        known = places[last + 1].get(now)
                        if known is None or made.order < known.order:
                            places[last + 1][now] = made
                if not reached and last > first and self._grown(first, last, room):
                    break
        return min(places[count].values(), key=lambda path: path.order, default=None)

    def _cost(self, segment: Segment) -> int:
        return segment.copied + (0 if self.least else segment.copies * self.context.memory.latency)

    def _grown(self, first: int, last: int, room: MemoryLimits) -> bool:
        """Are the rings of a run alone too large? So they are for longer ones."""
        least = self.segments.least.get((first, last))
        return least is not None and room.near is not None and least > room.near

    def _steps(self, first: int, last: int, far: frozenset[Buffer]) -> Iterator[tuple[Step, frozenset[Buffer]]]:
        """Ways to do some items where these tensors are far, and which of their results are far as well."""
        body = self.tensors.program.body
        made = self.tensors.made(first, last)
        operands = far & touched(body[first : last + 1])
        possible = [b for b in made if b in self.tensors.may_be_far]
        for results in self._subsets(possible):
            if first == last:
                yield Step(first, last, operands | results, False), results
            if self.segments.calls[last] is not None and len(made) <= 1:
                yield Step(first, last, operands | results, True), results

    def _possible(
        self, step: Step, far: frozenset[Buffer], results: frozenset[Buffer], room: MemoryLimits
    ) -> Segment | None:
        """What a step becomes, where there is room for it."""
        alive, made = self.tensors.alive[step.first], self.tensors.made(step.first, step.last)
        near_made = [b for b in made if b not in results]
        beside = sum(self.tensors.bytes(b) for b in (*alive, *near_made) if b not in far)
        if room.near is not None and step.last > step.first and beside > room.near + self._most_gained(near_made):
            return None
        segment = self.segments.get(step.first, step.last, step.far, step.by_rows)
        if segment is None:
            return None
        if self.least:
            held, away = self._least(step, far | results)
            if segment.chain is not None and len(near_made) == 1:
                held = max(held, beside - self._most_over(segment.chain, near_made[0], step, far))
            return segment if room.holds(held + segment.rings, away, step.first) else None
        near = beside + segment.near
        away = sum(self.tensors.bytes(b) for b in (*(b for b in alive if b in far), *results))
        near -= sum(self._gained(segment, b, [a for a in alive if a not in far], step.last) for b in near_made[:1])
        away -= sum(self._gained(segment, b, [a for a in alive if a in far], step.last) for b in results)
        return segment if room.holds(near, away, step.first) else None

    def _least(self, step: Step, far: frozenset[Buffer]) -> tuple[int, int]:
        """Bytes of the tensors of each memory before or after a step, whichever are more."""
        times = self.tensors.alive[step.first], self.tensors.alive[step.last + 1]
        near, away = (
            max(sum(self.tensors.bytes(b) for b in alive if (b in far) == there) for alive in times)
            for there in (False, True)
        )
        return near, away

    def _most_over(self, chain: Chain, result: Buffer, step: Step, far: frozenset[Buffer]) -> int:
        """Bytes of the result of a chain that lie over one operand that dies, at most."""
        size, others = self.tensors.bytes(result), {*self.tensors.alive[step.first]} - far
        dying = {b: self.tensors.bytes(b) for b in others if self.tensors.ends_within(b, step.last)}
        over = [min(size, dying[b]) for b in dying if b in chain.over]
        before = [size + dying[b] - max(size, dying[b] + chain.before[b]) for b in dying if b in chain.before]
        return max((*over, *before), default=0)

    def _subsets(self, buffers: Iterable[Buffer]) -> list[frozenset[Buffer]]:
        each = list(buffers)
        if len(each) > CHOICES:
            self.complete = False
            return [frozenset(), frozenset(each)]
        return [frozenset(some) for count in range(len(each) + 1) for some in itertools.combinations(each, count)]

    def _most_gained(self, made: Iterable[Buffer]) -> int:
        return sum(self.tensors.bytes(b) for b in made)

    def _gained(self, segment: Segment, result: Buffer, others: list[Buffer], last: int) -> int:
        """Bytes less where a result lies over, or begins a little before, an operand of its memory that dies."""
        dying = {b for b in others if self.tensors.ends_within(b, last)}
        size = self.tensors.bytes(result)
        chain = segment.chain
        over = {*chain.over} if chain is not None else self._alias(segment.body[0], result)
        best = size if any(self.tensors.bytes(b) >= size for b in dying & over) else 0
        if chain is None:
            return best
        for buffer in dying & {*chain.before}:
            together = max(size, self.tensors.bytes(buffer) + chain.before[buffer] + self.tensors.align)
            best = max(best, size + self.tensors.bytes(buffer) - together)
        return best

    def _alias(self, item: Item, result: Buffer) -> set[Buffer]:
        if not isinstance(item, Call) or not item.kernel:
            return set()
        needs = self.context.registry.match(item, self.context.target)
        if not isinstance(needs, Needs):
            return set()
        pairs = [pair for pair, reach in needs.alias.items() if reach >= 0 and item.outs[pair[0]].buffer is result]
        return {item.ins[operand].buffer for _, operand in pairs}
