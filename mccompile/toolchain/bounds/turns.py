"""Skips turns of a loop: those that do what the one before them has done (`loops.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from .blocks import FLAGS
from .known import State
from .loops import Trial
from .values import SOMEWHERE, STACK, WORD, add, of, signed, sub

_TRIES = 3  # of one turn; in each fewer places are known


class TripCounts:
    """Of the loops of a function, while it is followed."""

    def __init__(self, follow: Callable[[int, State], State | None], most: dict[int, int]) -> None:
        self.follow = follow
        self.most = most  # turns of each loop, each time it is entered
        self.taken: dict[int, int] = {}  # since it was entered
        self.came: dict[int, int] = {}  # how often, by the head of a loop
        self.before: dict[int, State] = {}

    def enter(self, head: int) -> None:
        """A loop, if one begins here."""
        if head in self.taken:
            for known in (self.taken, self.came, self.before):
                known.pop(head, None)

    def come(self, head: int, state: State) -> None:
        """To the first instruction of a loop, again."""
        self._count(head, 1)
        count = self.came[head] = self.came.get(head, 0) + 1
        before = self.before.pop(head, None)
        is_kept = count & (count - 1) == 0
        if before is None and not is_kept:
            return
        _forget_below(state)
        if before is not None and (turns := self._skipped(head, before, state, count > 2)):
            self._count(head, turns)
            self.came[head] = 0
        elif is_kept:
            kept = state.copy()
            kept.cost = state.cost
            self.before[head] = kept

    def _count(self, head: int, turns: int) -> None:
        taken = self.taken[head] = self.taken.get(head, 0) + turns
        self.most[head] = max(self.most.get(head, 0), taken + 1)

    def _skipped(self, head: int, before: State, state: State, may_forget: bool) -> int:
        """How many turns it has skipped."""
        trial = Trial(state.memory.trial)
        steps = dict(_steps(before, state)) if trial.is_possible else {}
        if not steps:
            return 0
        unknown = {place for place, step in steps.items() if step is None}
        flags = {FLAGS} if before.registers[FLAGS] != state.registers[FLAGS] else set()  # that a turn has set
        for _ in range(_TRIES):
            if unknown and not may_forget:
                return 0
            trial = Trial(state.memory.trial)
            side = state.copy()
            side.memory.trial = trial
            for place, step in steps.items():
                if step is not None:
                    _set(side, place, trial.growing(_number(state, place), step))
            for place in unknown | flags:
                _set(side, place, None)
            begun = side.copy()
            after = self.follow(head, side)
            if after is None or after.memory.is_lost != state.memory.is_lost or after.cost != state.cost - before.cost:
                return 0
            _forget_below(after)
            wrong = _wrong(begun, after, steps)
            if not wrong:
                return _skip(state, after, steps, unknown | flags, trial.turns())
            if not wrong <= steps.keys():
                return 0
            unknown |= wrong
        return 0


def _steps(before: State, state: State) -> Iterator[tuple[int, int | None]]:
    """Of places that have changed; None: not by a number."""
    was = dict(_known(before))
    for place, value in _known(state):
        if was.get(place, value) != value:
            by = None if (value | was[place]) & SOMEWHERE else sub(value, was[place])
            yield place, None if by is None or by >> 32 else by


def _wrong(begun: State, after: State, steps: Mapping[int, int | None]) -> set[int]:
    """Places that are neither a step further nor as they were."""
    found = set()
    for place in {*range(len(begun.registers)), *begun.memory.words, *after.memory.words}:
        begin = _at(begun, place)
        if begin is not None:
            step = steps.get(place)
            expected = add(_number(begun, place), step) if step else begin
            if _at(after, place) != expected:
                found.add(place)
    return found


def _skip(state: State, after: State, steps: Mapping[int, int | None], unknown: set[int], turns: int) -> int:
    if not 0 < turns < 1 << 32:
        return 0
    for place, step in steps.items():
        if step is not None:
            _set(state, place, add(_number(state, place), turns * step & WORD))
    for place in unknown:
        _set(state, place, None)
    state.cost += turns * after.cost
    for function, instructions in after.calls.items():
        state.calls[function] = state.calls.get(function, 0) + turns * instructions
    return turns


def _known(state: State) -> Iterator[tuple[int, int]]:
    """Places with what is in them."""
    for place, value in [*enumerate(state.registers), *state.memory.words.items()]:
        if type(value) is int:
            yield place, value


def _number(state: State, place: int) -> int:
    value = _at(state, place)
    assert type(value) is int
    return value


def _forget_below(state: State) -> None:
    """What lies below the stack pointer is not read again."""
    top = state.registers[13]
    if top is not None and of(top) == STACK:
        words = state.memory.words
        for place in [p for p in words if of(p) == STACK and signed(p) < signed(top)]:
            del words[place]


def _at(state: State, place: int) -> object:
    """Of a register, or a word of memory."""
    return state.registers[place] if place < len(state.registers) else state.memory.load(place)


def _set(state: State, place: int, value: int | None) -> None:
    if place < len(state.registers):
        state.registers[place] = value
    else:
        state.memory.words[place] = value
