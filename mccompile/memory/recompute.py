"""Which steps of a line are done a second time, so that their results need not be kept until they are read late.

A move takes one value: the readers behind a gap read a copy of it, made just in front of the first of them. What that
reads and is dead by then is kept for longer, or made again as well. Moves are chosen by what they take off the bytes
over the goal, per cost; a copy is a value like others, so moves build on moves: on a chain of equal layers they leave
checkpoints, and make the layers between two of them again.

Invariant: a line computes what the given one does, by the same steps; the search is a count of work, the same on every
machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from enum import Enum

import numpy as np

LOOKED_AT = 8  # moves whose line is worked out, of those that promise most
DEPTH = 40  # steps that one move does again
EFFORT = 1_500_000  # steps of lines that are worked out


@dataclass(frozen=True, slots=True)
class Recomputation:
    """What doing a step again takes."""

    time: float
    macs: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """`call` says which step of the given line it is or repeats. Its result may lie over values of `over` that die
    with it."""

    call: int
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    over: tuple[int, ...] = ()
    workspace: int = 0
    again: Recomputation | None = None  # None: it cannot be done again


@dataclass(frozen=True)
class Line:
    """Steps in order, and the values that they read and write. Those that no step writes are there from the start."""

    steps: tuple[Step, ...]
    sizes: tuple[int, ...]  # of values, 0 where their memory is never free
    lasting: frozenset[int] = frozenset()  # values that are needed in the end
    fixed: frozenset[int] = frozenset()  # values whose readers cannot read a copy
    macs: int = 0  # that were added
    # Values that come to lie over another one, once that is not read any more; until then they lie beside it.
    instead: Mapping[int, int] = field(default_factory=dict)

    def lives(self) -> tuple[list[int], list[int]]:
        """The steps that each value lives from and to."""
        first, last = [0] * len(self.sizes), [-1] * len(self.sizes)
        for place, step in enumerate(self.steps):
            for value in step.writes:
                first[value] = last[value] = place
            for value in step.reads:
                last[value] = place
        for value in self.lasting:
            last[value] = len(self.steps) - 1
        for value, old in self.instead.items():
            last[value] = last[old] if last[old] > first[value] else -1
        return first, last

    def held(self, but: Set[int] = frozenset()) -> np.ndarray:
        """Bytes that are in use at each step; those of the values `but` only where these are read or written."""
        first, last = self.lives()
        change = np.zeros(len(self.steps) + 1, np.int64)
        for value, (size, begin, end) in enumerate(zip(self.sizes, first, last, strict=True)):
            if size and end >= begin and value not in but:
                change[begin] += size
                change[end + 1] -= size
        found: np.ndarray = np.cumsum(change)[:-1]
        for place, step in enumerate(self.steps):
            found[place] += sum(self.sizes[v] for v in {*step.reads, *step.writes} & but) if but else 0
            dying = max((self.sizes[v] for v in step.over if last[v] == place), default=0)
            found[place] += step.workspace - min(dying, sum(self.sizes[v] for v in step.writes if last[v] >= place))
        return found

    @property
    def peak(self) -> int:
        return int(self.held().max(initial=0))

    @property
    def floor(self) -> int:
        """No line of these steps in this order needs less, whatever is done again."""
        again = {value for step in self.steps if step.again is not None for value in step.writes}
        return int(self.held(again - self.fixed - self.lasting).max(initial=0))


class How(Enum):
    """What becomes of values that a step that is done again reads, and that are dead by then."""

    LONGER = "they are kept"
    AGAIN = "they are made again"
    EARLIER = "they are made again, in place of copies that are made later"


@dataclass(frozen=True)
class _Move:
    value: int
    reader: int  # the place of the first step that reads the copy
    gain: int  # at most
    time: float

    @property
    def promise(self) -> float:
        return self.gain / self.time


def recomputed(line: Line, goal: int, macs: int) -> Line:
    """A line whose peak is at most `goal`, or as near to it as moves lead, with at most so many more macs."""
    search = _Search(line, goal, macs)
    while search.over.any() and search.left > 0:
        found = search.next()
        if found is None:
            break
        search.take(found)
    return search.line


class _Search:
    def __init__(self, line: Line, goal: int, macs: int) -> None:
        self.goal, self.macs, self.left = goal, macs, EFFORT
        self.same = list(range(len(line.sizes)))  # of each value the given one that it is a copy of
        self.least = sum(step.again.time for step in line.steps if step.again) / max(1, len(line.steps)) / 8
        self.take((line, self.same))

    def take(self, found: tuple[Line, list[int]]) -> None:
        self.line, self.same = found
        self.over = np.maximum(self.line.held() - self.goal, 0)
        self.first, self.last = self.line.lives()
        self.made_by = {value: step for step in self.line.steps for value in step.writes}
        self.alike: dict[int, list[int]] = {}
        for value, origin in enumerate(self.same):
            self.alike.setdefault(origin, []).append(value)

    def next(self) -> tuple[Line, list[int]] | None:
        """The best move, and which values are the same then."""
        moves = sorted(self.moves(), key=lambda move: (-move.promise, move.value, move.reader))
        total = int(self.over.sum())
        for begin in range(0, min(len(moves), 8 * LOOKED_AT), LOOKED_AT):
            best = None
            for move in moves[begin : begin + LOOKED_AT]:
                for how in How:
                    made = self.made(move, how)
                    if made is None:
                        continue
                    line, same, time = made
                    self.left -= len(line.steps)
                    gain = total - int(np.maximum(line.held() - self.goal, 0).sum())
                    worth = gain / (max(0, time) + self.least)
                    if gain > 0 and line.macs <= self.macs and (best is None or worth > best[0]):
                        best = worth, (line, same)
            if best is not None:
                return best[1]
        return None

    def moves(self) -> Iterator[_Move]:
        """Of values that somebody reads early and somebody late, with bytes over the goal between."""
        readers: dict[int, list[int]] = {}
        for place, step in enumerate(self.line.steps):
            for value in dict.fromkeys(step.reads):
                readers.setdefault(value, []).append(place)
        for value, places in readers.items():
            maker, size = self.made_by.get(value), self.line.sizes[value]
            if maker is None or maker.again is None or not size or value in self.line.fixed | self.line.lasting:
                continue
            for before, reader in zip([self.first[value], *places], places, strict=False):
                gain = int(np.minimum(self.over[before + 1 : reader], size).sum())
                if gain:
                    yield _Move(value, reader, gain, maker.again.time + self.least)

    def made(self, move: _Move, how: How) -> tuple[Line, list[int], float] | None:
        """The line after a move, and what it costs more."""
        copies = _Copies(self, move, how)
        copies.again(move.value)
        if not copies.steps or len(copies.steps) > DEPTH:
            return None
        instead = {value: copy for value, copy in copies.instead.items() if value not in self.line.fixed}
        gone = set[int]()
        if how == How.EARLIER:  # copies that follow are not made: these are read there
            for value, copy in [*instead.items()]:
                later = [v for v in self.alike[self.same[value]] if self.first[v] >= move.reader]
                gone.update(later)
                instead.update(dict.fromkeys(later, copy))
        late = [step for step in self.line.steps[move.reader :] if not gone.issuperset(step.writes) or not step.writes]
        time = sum(step.again.time for step in copies.steps if step.again)
        macs = sum(step.again.macs for step in copies.steps if step.again)
        for step in self.line.steps[move.reader :]:
            if step.again and step.writes and gone.issuperset(step.writes):
                time, macs = time - step.again.time, macs - step.again.macs
        here = tuple(_reading(step, instead) for step in late)
        steps = (*self.line.steps[: move.reader], *copies.steps, *here)
        line = replace(self.line, steps=steps, sizes=tuple(copies.sizes), macs=self.line.macs + macs)
        return line, copies.same, time


class _Copies:
    """The steps that a move does again."""

    def __init__(self, search: _Search, move: _Move, how: How) -> None:
        self.search, self.move, self.how = search, move, how
        self.sizes, self.same = list(search.line.sizes), list(search.same)
        self.instead: dict[int, int] = {}
        self.steps: list[Step] = []

    def again(self, value: int) -> int:
        """A copy of the value, where it can be made."""
        maker = self.search.made_by.get(value)
        if maker is None or maker.again is None or len(self.steps) > DEPTH:
            return value
        reads = {read: self.operand(read) for read in dict.fromkeys(maker.reads)}
        for own in maker.writes:
            self.instead[own] = len(self.sizes)
            self.sizes.append(self.sizes[own])
            self.same.append(self.same[own])
        self.steps.append(
            replace(
                maker,
                reads=tuple(reads[v] for v in maker.reads),
                writes=tuple(self.instead[v] for v in maker.writes),
                over=tuple(reads[v] for v in maker.over),
            )
        )
        return self.instead[value]

    def operand(self, value: int) -> int:
        """What a step that is done again reads."""
        search, move = self.search, self.move
        if value in self.instead:
            return self.instead[value]
        for other in search.alike[search.same[value]]:
            if search.first[other] < move.reader <= search.last[other] and other != move.value:
                return other
        can = self.sizes[value] and value not in search.line.fixed
        return self.again(value) if can and self.how != How.LONGER else value


def _reading(step: Step, instead: Mapping[int, int]) -> Step:
    if instead.keys().isdisjoint(step.reads):
        return step
    return replace(step, reads=_with(step.reads, instead), over=_with(step.over, instead))


def _with(values: Sequence[int], instead: Mapping[int, int]) -> tuple[int, ...]:
    return tuple(instead.get(value, value) for value in values)
