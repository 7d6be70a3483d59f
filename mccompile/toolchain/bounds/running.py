"""Abstract execution: a function is followed through its machine code with what is known of registers and memory. Where
a branch depends on what is not known, both ways are followed up to where they meet again, and the dearer one counts.

Invariant: the instructions that are given are at least those of any run. A loop whose end depends on what is not known
ends the analysis with `Unbounded`, which names it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...base.records import dataclass
from . import runtime
from .blocks import CALL, CORE, FLAGS, JUMP, LANES, RETURN, UNKNOWN, Code, Registers
from .known import State
from .memory import Memory
from .paths import Loop, dearest
from .shape import Shape
from .turns import TripCounts
from .values import LIBRARY, MODEL, OBJECT, SAVED, STACK, of
from .values import RETURN as TOP

MOST_FORKS = 100  # branches, one within the other, that depend on data
MOST_EXITS = 1000  # of a loop, by such a branch
MOST_EXITS_IN_TRIALS = 8  # of turns that are followed for others; without these, each is followed
MOST_BLOCKS = 16_000_000
FORK = 20  # blocks that take as long to follow as a fork
_SCRATCH = range(CORE, CORE + 16)  # registers of floats that a call may change
BACK = -1  # where runs end that have returned


class Unbounded(Exception):
    """Why there is no bound."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at = at
        self.why = why


@dataclass(frozen=True)
class _Known:
    """What a call gives for arguments that do not point anywhere."""

    results: tuple[object, ...]
    kept: tuple[int, ...]  # registers with what they had
    cost: int
    calls: Mapping[int, int]


@dataclass(frozen=True)
class Frame:
    entry: int
    back: int  # what it returns to
    is_top: bool = False


class Run:
    def __init__(self, code: Code, aligned: int) -> None:
        self.code = code
        self.aligned = aligned
        self.known: dict[tuple[object, ...], _Known | None] = {}
        self.shapes: dict[int, Shape] = {}
        self.by_turns: dict[int, bool] = {}  # functions whose loops end by data after so many turns
        self.turns: dict[int, int] = {}  # the most of a loop each time it is entered, by its head
        self.dearest: dict[int, int] = {}  # the most instructions of a call, by the function
        self.blocks = 0
        self.without: dict[int, Unbounded] = {}  # calls of the function that is asked for which have no bound
        self.depth = 0

    def of(self, entry: int, words: Mapping[int, int]) -> State:
        """Where words of the model's struct have these numbers, by offset."""
        registers: Registers = [None] * (CORE + 32)
        registers[0], registers[13], registers[14] = MODEL, STACK, TOP
        state = State(registers, Memory(self.code.image, {}, self.aligned), 0, {})
        state.memory.words.update({MODEL + at: number for at, number in words.items()})
        ended = self._follow(entry, state, frozenset(), Frame(entry, TOP, True))
        return ended[BACK]

    def _follow(self, at: int, state: State, stops: frozenset[int], frame: Frame) -> dict[int, State]:
        """Until it returns or comes to a stop; what is known at each of these."""
        ended: dict[int, State] = {}
        pending: dict[int, State] = {}  # where other ways go on
        turns = TripCounts(lambda head, side: self._turn(head, side, stops, frame), self.turns)
        left: dict[int, int] = {}  # how often a branch that depends on data might have ended a loop
        while True:
            block = self.code.block(at)
            goes: Any
            if at in self.code.names and self._has_turns(
                at, state
            ):  # come to by a jump: it returns for who jumps there
                goes = self._ends_in(at, state)
            else:
                state.cost += block.count
                goes = block.run(state.registers, state.memory)
            self.blocks += 1
            if self.blocks > MOST_BLOCKS:
                raise Unbounded(at, "the run is longer than what is followed")
            if type(goes) is not int:
                kind = goes[0]
                if kind == JUMP:
                    left[at] = left.get(at, 0) + (block.last in self._shape(frame.entry).leaves)
                    if left[at] > (MOST_EXITS if state.memory.trial is None else MOST_EXITS_IN_TRIALS):
                        raise Unbounded(block.last, "a loop ends by data")
                    for where, other in self._fork(block.last, goes[1:], state, stops, frame).items():
                        _into(ended if where in stops or where == BACK else pending, where, other)
                    goes = None
                elif kind == CALL:
                    goes = self._call(block.last, goes[1], goes[2], state, frame)
                elif kind == RETURN:
                    goes = self._return(block.last, goes, state, frame, ended)
                else:
                    assert kind == UNKNOWN
                    raise Unbounded(block.last, goes[1])
            if goes in stops:
                _into(ended, goes, state)
                goes = None
            if goes is None:
                if not pending:
                    return ended
                goes = min(pending)  # the head of a loop comes before what is behind the loop
                state = pending.pop(goes)
            elif goes in pending:
                state.meet(pending.pop(goes))
            if goes <= at:
                turns.come(goes, state)
            else:
                turns.enter(goes)
            at = goes

    def _return(
        self, at: int, goes: tuple[Any, ...], state: State, frame: Frame, ended: dict[int, State]
    ) -> int | None:
        """Where execution goes on in the function."""
        _, value, by_call, *rest = goes
        if rest:  # or it goes on
            left = state.copy()
            left.registers = rest[1]
            left.behind(state)
            _into(ended, BACK, left)
            after: int = rest[0]
            return after
        if value is None or value & ~1 == frame.back & ~1:
            if value is None and not by_call:
                raise Unbounded(at, "a jump to a place that is computed")
            _into(ended, BACK, state)
            return None
        if value >> 32:
            raise Unbounded(at, "a jump to a place that is computed")
        return int(value & ~1)

    def _turn(self, head: int, side: State, stops: frozenset[int], frame: Frame) -> State | None:
        """A turn of a loop, if nothing leaves the loop in it."""
        depth, turns = self.depth, dict(self.turns)
        try:
            ended = self._follow(head, side, stops | {head}, frame)
        except Unbounded:
            self._back_to(depth, turns)
            return None
        return ended[head] if [*ended] == [head] else None

    def _fork(
        self, at: int, goals: tuple[int, ...], state: State, stops: frozenset[int], frame: Frame
    ) -> dict[int, State]:
        """Both ways of a branch, to where they meet or to the head of a loop around them."""
        self.depth += 1
        self.blocks += FORK
        if self.depth > MOST_FORKS:
            raise Unbounded(at, "branches that depend on data are too many, one within the other")
        within = stops | self._shape(frame.entry).stops.get(at, frozenset())
        found: dict[int, State] = {}
        for goal in goals:
            side = state.copy()
            ends = {goal: side} if goal in within else self._follow(goal, side, within, frame)
            for where, other in ends.items():
                _into(found, where, other)
        self.depth -= 1
        for other in found.values():
            other.behind(state)
        return found

    def _call(self, site: int, goal: int | None, after: int, state: State, frame: Frame) -> int:
        """The call of a function, up to its return; where execution goes on."""
        if goal is None or goal >> 32:
            raise Unbounded(site, "a call by pointer")
        goal &= ~1
        before, kept = state.cost, state.copy() if frame.is_top else state
        depth = self.depth
        try:
            if self._has_turns(goal, state):
                self._of_runtime(goal, state)
            elif not self._from_known(goal, state):
                ends = self._follow(goal, state, frozenset(), Frame(goal, after))
                ended = ends[BACK]
                state.registers, state.memory = ended.registers, ended.memory
                state.cost, state.calls = ended.cost, ended.calls
        except Unbounded as why:
            if not frame.is_top or state.memory.trial is not None:
                raise
            self.without.setdefault(site, why)
            self.depth = depth
            state.registers, state.memory, state.cost = kept.registers, kept.memory, before
            self._forget(state)
        if self.code.function(goal) in runtime.OWN:
            state.registers[0] = LIBRARY
        self._count(goal, state, state.cost - before)
        return after

    def _count(self, goal: int, state: State, taken: int) -> None:
        state.calls[goal] = state.calls.get(goal, 0) + taken
        self.dearest[goal] = max(taken, self.dearest.get(goal, 0))

    def _has_turns(self, goal: int, state: State) -> bool:
        if goal not in self.by_turns:
            self.by_turns[goal] = runtime.has_turns(self.code, goal)
        if self.by_turns[goal] and self.code.function(goal) in runtime.FOLLOWED:
            return None in state.registers[:2]
        return self.by_turns[goal]

    def _ends_in(self, goal: int, state: State) -> tuple[int, object, bool]:
        """A function whose loops end by data, and the return from it."""
        back, before = state.registers[14], state.cost
        self._of_runtime(goal, state)
        self._count(goal, state, state.cost - before)
        return RETURN, back, False

    def _of_runtime(self, goal: int, state: State) -> None:
        """A function whose loops end by data, after so many turns at most."""
        memory = state.memory
        if self.code.function(goal) in runtime.STORING:
            memory.kill(memory.load(state.registers[13]), 8)
        ways, costs = self.code.ways(goal), {}
        for at in ways:
            block = self.code.block(at)
            side = state.copy()
            side.registers = [each if n > 3 else None for n, each in enumerate(state.registers)]
            goes = block.run(side.registers, side.memory)
            if type(goes) is tuple and goes[0] == CALL:
                side.registers = [*[None] * 4, *state.registers[4:]]
                self._call(block.last, goes[1], goes[2], side, Frame(goal, goes[2]))
            costs[at] = block.count + side.cost
        state.cost += dearest(ways, costs, goal, self._turns_of)
        _clobber(state.registers)

    def _turns_of(self, loop: Loop) -> int:
        most = runtime.turns(self.code, loop)
        heads = {way for at in loop for way in self.code.block(at).ways if way in loop and way <= at}
        self.turns |= dict.fromkeys(heads, most)
        return most

    def _forget(self, state: State) -> None:
        """What a call changes that has not been followed."""
        registers = state.registers
        if any(each is not None and of(each) == STACK for each in registers[:4]):
            state.memory.lose()
        _clobber(registers)

    def _from_known(self, goal: int, state: State) -> bool:
        """Whether a call is equal to one before, or will be to later ones, wherever its arguments point."""
        registers = state.registers
        arguments = [None if each is None or each >> 32 else each for each in registers[:4]]
        key = (goal, *arguments)
        if key not in self.known:
            self.known[key] = self._learnt(goal, arguments)
        found = self.known[key]
        if found is None:
            return False
        before = [*registers]
        _clobber(registers)
        registers[:4] = found.results
        for number in found.kept:
            registers[number] = before[number]
        state.cost += found.cost
        for function, instructions in found.calls.items():
            state.calls[function] = state.calls.get(function, 0) + instructions
        return True

    def _learnt(self, goal: int, arguments: Registers) -> _Known | None:
        saved = [SAVED + (number << OBJECT) for number in range(24)]
        back = TOP
        registers = [*arguments, *saved[:8], None, STACK, back, None, None, *[None] * 16, *saved[8:]]
        state = State(registers, Memory(self.code.image, {}), 0, {})
        depth, turns = self.depth, dict(self.turns)
        try:
            ended = self._follow(goal, state, frozenset(), Frame(goal, back))
        except Unbounded:
            self._back_to(depth, turns)
            return None
        state = ended[BACK]
        after = state.registers
        above = any(of(at) == STACK and at & 1 << 31 == 0 for at in state.memory.words)
        kept = after[4:12] + after[CORE + 16 :] == saved and after[13] == STACK
        if not kept or above or state.memory.is_lost:
            self._back_to(depth, turns)
            return None
        results = tuple(None if each is None or each >> 32 else each for each in after[:4])
        return _Known(results, self.code.kept(goal), state.cost, state.calls)

    def _back_to(self, depth: int, turns: dict[int, int]) -> None:
        """What was known before something was followed in vain."""
        self.depth = depth
        self.turns.clear()
        self.turns.update(turns)

    def _shape(self, entry: int) -> Shape:
        if entry not in self.shapes:
            self.shapes[entry] = Shape.of(self.code, entry)
        return self.shapes[entry]


def _clobber(registers: Registers) -> None:
    """What calls need not keep."""
    for number in (0, 1, 2, 3, 12, 14, FLAGS, LANES, *_SCRATCH):
        registers[number] = None


def _into(ended: dict[int, State], where: int, state: State) -> None:
    if where in ended:
        ended[where].meet(state)
    else:
        ended[where] = state
