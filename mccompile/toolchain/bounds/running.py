"""Abstract execution: a function is followed through its machine code with what is known of registers and memory. Where
a branch depends on what is not known, both ways are followed up to where they meet again, and the dearer one counts.

Invariant: the instructions that are given are at least those of any run. A loop whose end depends on what is not known
ends the analysis with `Unbounded`, which names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .blocks import CALL, FLAGS, JUMP, LANES, RETURN, UNKNOWN, Code, Registers
from .memory import MODEL, SAVED, STACK, Memory
from .memory import RETURN as TOP
from .values import OBJECT, meet

MOST_FORKS = 100  # branches, one within the other, that depend on data
MOST_BLOCKS = 4_000_000
FORK = 20  # blocks that take as long to follow as a fork
BACK = -1  # where runs end that have returned


class Unbounded(Exception):
    """Why there is no bound."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at = at
        self.why = why


@dataclass
class State:
    registers: Registers
    memory: Memory
    cost: int
    visits: dict[object, int]  # how often each block is entered, and each call of what is known already

    def copy(self) -> State:
        return State([*self.registers], self.memory.copy(), 0, {})

    def meet(self, other: State) -> None:
        self.registers = [
            (a if a == b else None) if place in (FLAGS, LANES) else meet(a, b)
            for place, (a, b) in enumerate(zip(self.registers, other.registers, strict=True))
        ]
        self.memory.meet(other.memory)
        self.cost = max(self.cost, other.cost)
        for key, times in other.visits.items():
            self.visits[key] = max(times, self.visits.get(key, 0))

    def behind(self, before: State) -> None:
        """As it is when `before` has come first."""
        self.cost += before.cost
        for key, times in before.visits.items():
            self.visits[key] = self.visits.get(key, 0) + times


@dataclass(frozen=True)
class _Known:
    """What a call gives for arguments that do not point anywhere."""

    results: tuple[object, ...]
    cost: int
    visits: Mapping[object, int]


@dataclass(frozen=True)
class Frame:
    entry: int
    back: int  # what it returns to
    is_top: bool = False


class Run:
    def __init__(self, code: Code) -> None:
        self.code = code
        self.known: dict[tuple[object, ...], _Known | None] = {}
        self.joins: dict[int, dict[int, int]] = {}
        self.blocks = 0
        self.without: dict[int, Unbounded] = {}  # calls of the function that is asked for which have no bound
        self.depth = 0

    def of(self, entry: int) -> State:
        registers: Registers = [None] * 18
        registers[0], registers[13], registers[14] = MODEL << OBJECT, STACK << OBJECT, TOP << OBJECT
        state = State(registers, Memory(self.code.image, {}), 0, {})
        ended = self._follow(entry, state, frozenset(), Frame(entry, TOP << OBJECT, True))
        return ended[BACK]

    def _follow(self, at: int, state: State, stops: frozenset[int], frame: Frame) -> dict[int, State]:
        """Until it returns or comes to a stop; what is known at each of these."""
        ended: dict[int, State] = {}
        visits, block_of, registers = state.visits, self.code.block, state.registers
        while True:
            block = block_of(at)
            visits[at] = visits.get(at, 0) + 1
            state.cost += block.count
            goes = block.run(registers, state.memory)
            self.blocks += 1
            if self.blocks > MOST_BLOCKS:
                raise Unbounded(at, "the run is longer than what is followed")
            if type(goes) is not int:
                kind = goes[0]
                if kind == JUMP:
                    found = self._fork(block.last, goes[1:], state, stops, frame)
                    if found is None:
                        raise Unbounded(block.last, "a loop ends by data")
                    join, each = found
                    for where, other in each.items():
                        _into(ended, where, other)
                    if join is None:
                        return ended
                    state, goes = ended.pop(join), join
                    visits, registers = state.visits, state.registers
                elif kind == CALL:
                    goes = self._call(block.last, goes[1], goes[2], state, frame)
                    registers = state.registers
                elif kind == RETURN:
                    _, value, by_call, *rest = goes
                    if rest:  # or it goes on
                        left = state.copy()
                        left.registers = rest[1]
                        left.behind(state)
                        _into(ended, BACK, left)
                        goes = rest[0]
                    elif value is None or value & ~1 == frame.back & ~1:
                        if value is None and not by_call:
                            raise Unbounded(block.last, "a jump to a place that is computed")
                        _into(ended, BACK, state)
                        return ended
                    elif value >> 32:
                        raise Unbounded(block.last, "a jump to a place that is computed")
                    else:
                        goes = value & ~1
                else:
                    assert kind == UNKNOWN
                    raise Unbounded(block.last, goes[1])
            if goes in stops:
                _into(ended, goes, state)
                return ended
            at = goes

    def _fork(
        self, at: int, goals: tuple[int, ...], state: State, stops: frozenset[int], frame: Frame
    ) -> tuple[int | None, dict[int, State]] | None:
        """Both ways of a branch. Where they meet, if there, and where they end."""
        join = self._join(frame.entry, at)
        within = stops if join is None else stops | {join}
        self.depth += 1
        self.blocks += FORK
        if self.depth > MOST_FORKS:
            return None
        found: dict[int, State] = {}
        for goal in goals:
            side = state.copy()
            ends = {goal: side} if goal in within else self._follow(goal, side, within, frame)
            for where, other in ends.items():
                _into(found, where, other)
        self.depth -= 1
        for other in found.values():
            other.behind(state)
        return (join if join in found and join not in stops else None), found

    def _call(self, site: int, goal: int | None, after: int, state: State, frame: Frame) -> int:
        """The call of a function, up to its return; where execution goes on."""
        if goal is None or goal >> 32:
            raise Unbounded(site, "a call by pointer")
        goal &= ~1
        before, kept = state.cost, state.copy() if frame.is_top else state
        depth = self.depth
        try:
            if not self._from_known(goal, state):
                ends = self._follow(goal, state, frozenset(), Frame(goal, after))
                ended = ends[BACK]
                state.registers, state.memory = ended.registers, ended.memory
                state.cost, state.visits = ended.cost, ended.visits
        except Unbounded as why:
            if not frame.is_top:
                raise
            self.without.setdefault(site, why)
            self.depth = depth
            state.registers, state.memory, state.cost = kept.registers, kept.memory, before
            self._forget(state)
        if frame.is_top:
            state.visits["call", site] = state.visits.get(("call", site), 0) + state.cost - before
        return after

    def _forget(self, state: State) -> None:
        """What a call changes that has not been followed."""
        registers = state.registers
        if any(each is not None and each >> OBJECT == STACK for each in registers[:4]):
            state.memory.lose()
        for number in (0, 1, 2, 3, 12, 14, FLAGS, LANES):
            registers[number] = None

    def _from_known(self, goal: int, state: State) -> bool:
        """Whether a call is equal to one before, or will be to later ones: no argument points anywhere."""
        registers = state.registers
        if any(each is not None and each >> 32 for each in registers[:4]):
            return False
        key = (goal, *registers[:4])
        if key not in self.known:
            self.known[key] = self._learnt(goal, registers[:4])
        found = self.known[key]
        if found is None:
            return False
        registers[:4] = found.results
        for number in (12, 14, FLAGS, LANES):
            registers[number] = None
        state.cost += found.cost
        state.visits[key] = state.visits.get(key, 0) + 1
        return True

    def _learnt(self, goal: int, arguments: Registers) -> _Known | None:
        saved = [SAVED + number << OBJECT for number in range(8)]
        back = TOP << OBJECT
        registers = [*arguments, *saved, None, STACK << OBJECT, back, None, None, None]
        state = State(registers, Memory(self.code.image, {}), 0, {})
        depth = self.depth
        try:
            ended = self._follow(goal, state, frozenset(), Frame(goal, back))
        except Unbounded:
            self.depth = depth
            return None
        state = ended[BACK]
        after = state.registers
        above = any(at >> OBJECT == STACK and at & 1 << 31 == 0 for at in state.memory.words)
        kept = after[4:12] == saved and after[13] == STACK << OBJECT
        if not kept or above or state.memory.is_lost:
            return None
        results = tuple(None if each is None or each >> 32 else each for each in after[:4])
        return _Known(results, state.cost, state.visits)

    def _join(self, entry: int, at: int) -> int | None:
        """The first block that all ways from a branch come to."""
        if entry not in self.joins:
            self.joins[entry] = joins(self.code, entry)
        return self.joins[entry].get(at)


def _into(ended: dict[int, State], where: int, state: State) -> None:
    if where in ended:
        ended[where].meet(state)
    else:
        ended[where] = state


def joins(code: Code, entry: int) -> dict[int, int]:
    """Immediate post-dominators of the blocks of a function, by the address of their last instruction."""
    ways: dict[int, tuple[int, ...]] = {}
    left = [entry]
    while left:
        at = left.pop()
        if at not in ways:
            ways[at] = code.block(at).ways
            left += ways[at]
    order = [*ways]
    bit = {at: 1 << number for number, at in enumerate(order)}
    every = (1 << len(order)) - 1
    after = {at: every if ways[at] else bit[at] for at in order}
    changed = True
    while changed:
        changed = False
        for at in reversed(order):
            if ways[at]:
                common = every
                for way in ways[at]:
                    common &= after[way]
                common |= bit[at]
                if common != after[at]:
                    after[at], changed = common, True
    found = {}
    for at in order:
        later = after[at] & ~bit[at]
        for each in order:  # the one that all others of them are behind
            if later & bit[each] and after[each] == later:
                found[code.block(at).last] = each
                break
    return found
