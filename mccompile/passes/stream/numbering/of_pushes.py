"""The numbers of successive pushes of a program with state, many pushes at once.

What a push leaves for the next one is the only way from push to push. So whatever does not wait for itself that way is
computed for all pushes together; the circles that are left (the past of a tensor, joined to what is new) go push by
push, which only moves numbers about. What no state needs is computed for the last push alone.

Invariant: the numbers are those of single runs, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeAlias

import numpy as np

from ....base.dims import static
from ....kinds.concat import Concat
from ....kinds.map import Map
from ....program.ir import Buffer, Call, Item, Program, View, reads, walk, writes
from .numbers import Numbers
from .of_programs import Run

_ELEMENTS = 4_000_000  # of buffers for all pushes that are computed together

Node: TypeAlias = "Item | Buffer"  # something to be done, or a state that comes from the push before
Inputs = Callable[[int, int], Mapping[str, Numbers]]  # of so many pushes from one on


class Pushes:
    """Runs of one program, from a state on that is given."""

    def __init__(
        self,
        program: Program,
        inputs: Inputs,
        state: Mapping[str, Numbers],
        watched: Callable[[Call, Numbers], None] | None = None,
    ) -> None:
        self.program, self.inputs, self.watched = program, inputs, watched
        buffers, outputs = dict(program.inputs), dict(program.outputs)
        self.kept: dict[Buffer, View] = {buffers[name]: outputs[after] for name, after in program.states.items()}
        self.state = {buffers[name]: numbers.reshape(1, -1) for name, numbers in state.items()}
        self.writers: dict[Buffer, Node] = dict(zip(self.kept, self.kept, strict=True))
        for item in program.body:
            self.writers.update((view.buffer, item) for inner in walk([item]) for view in writes(inner))
        self.order = _circles(list(self.kept), self._sources)

    def last(self, count: int) -> dict[str, Numbers]:
        """The results of push number `count`."""
        needed = [item for circle in self.order for item in circle if not isinstance(item, Buffer)]
        sizes = {view.buffer for item in needed for inner in walk([item]) for view in (*reads(inner), *writes(inner))}
        size = sum(static(buffer.type.count) for buffer in sizes if buffer.constant is None)
        together = max(1, min(count, _ELEMENTS // max(size, 1)))
        run = Run(self.program, self.watched)
        for first in range(0, count, together):
            run = self._some(first, min(together, count - first))
        run.memory = {buffer: numbers[-1:] for buffer, numbers in run.memory.items()}
        for item in self.program.body:
            if item not in self.done:
                run.do(item)
        return {name: run.read(view) for name, view in self.program.outputs}

    @cached_property
    def done(self) -> set[Node]:
        return {node for circle in self.order for node in circle}

    def _some(self, first: int, count: int) -> Run:
        """So many pushes; the state is theirs then."""
        run = Run(self.program, self.watched)
        run.give(self.inputs(first, count))
        for circle in self.order:
            if len(circle) > 1 or circle[0] in self._sources(circle[0]):
                self._around(run, circle, count)
            elif isinstance(circle[0], Buffer):
                run.memory[circle[0]] = _later(self.state[circle[0]], self._flat(run, circle[0]), count)
            else:
                run.do(circle[0])
        self.state = {buffer: self._flat(run, buffer)[-1:] for buffer in self.kept}
        return run

    def _flat(self, run: Run, state: Buffer) -> Numbers:
        """What is kept for the next push."""
        numbers = run.read(self.kept[state])
        return numbers.reshape(numbers.shape[0], -1)

    def _sources(self, node: Node) -> Iterable[Node]:
        """What has to be there before."""
        views = [self.kept[node]] if isinstance(node, Buffer) else [v for i in walk([node]) for v in reads(i)]
        return [self.writers[view.buffer] for view in views if view.buffer in self.writers]

    def _around(self, run: Run, circle: Sequence[Node], count: int) -> None:
        """What waits for itself of the push before."""
        states = [node for node in circle if isinstance(node, Buffer)]
        items = [item for item in self.program.body if item in circle]
        made = {view.buffer for item in items for inner in walk([item]) for view in writes(inner)}
        read = {view.buffer for item in items for inner in walk([item]) for view in reads(inner)}
        outside = [buffer for buffer in read if buffer not in made and buffer not in states]
        step = _Moves(self.program, items, [*states, *outside]) if all(map(_moves_only, items)) else None
        found: dict[Buffer, list[Numbers]] = {buffer: [] for buffer in (*states, *made)}
        now = {state: self.state[state] for state in states}
        for push in range(count):
            rows = {buffer: _row(run.buffer(buffer), push) for buffer in outside}
            one = step(now | rows) if step else self._one(items, now | rows)
            for buffer in found.keys() & one.memory.keys():  # what loops swap has no name of its own behind them
                found[buffer].append(one.memory[buffer])
            now = {state: self._flat(one, state) for state in states}
        waiting = self._read_elsewhere(circle)
        for buffer, numbers in found.items():
            if numbers:
                run.memory[buffer] = np.concatenate(numbers if buffer in waiting else numbers[-1:])

    def _one(self, items: Sequence[Item], memory: dict[Buffer, Numbers]) -> Run:
        run = Run(self.program)
        run.memory = memory
        for item in items:
            run.do(item)
        return run

    def _read_elsewhere(self, circle: Sequence[Node]) -> set[Buffer]:
        """By what is computed for every push."""
        others = [node for each in self.order if each is not circle for node in each]
        items = {
            view.buffer for node in others if not isinstance(node, Buffer) for i in walk([node]) for view in reads(i)
        }
        return items | {self.kept[node].buffer for node in others if isinstance(node, Buffer)}


class _Moves:
    """Items that only move elements, as one table of where each comes from."""

    def __init__(self, program: Program, items: Sequence[Item], sources: Sequence[Buffer]) -> None:
        self.program, self.sources = program, sources
        run, first = Run(program), 0
        for buffer in sources:
            size = static(buffer.type.count)
            run.memory[buffer] = np.arange(first, first + size, dtype=np.uint64)[None]
            first += size
        for item in items:
            run.do(item)
        self.places = {buffer: table[0].astype(np.int64) for buffer, table in run.memory.items()}

    def __call__(self, memory: Mapping[Buffer, Numbers]) -> Run:
        all_of_them = np.concatenate([memory[buffer][0] for buffer in self.sources])
        run = Run(self.program)
        run.memory = {buffer: all_of_them[table][None] for buffer, table in self.places.items()}
        return run


def _moves_only(item: Item) -> bool:
    return isinstance(item, Call) and (
        isinstance(item.kind, Concat) or (isinstance(item.kind, Map) and item.kind.is_copy)
    )


def _row(numbers: Numbers, push: int) -> Numbers:
    return numbers[push : push + 1] if len(numbers) > 1 else numbers


def _later(before: Numbers, kept: Numbers, count: int) -> Numbers:
    """What each push finds is what the one before it left."""
    left = np.broadcast_to(kept, (count, kept.shape[1]))[: count - 1]
    return np.concatenate([before, left])


def _circles(starts: Sequence[Node], sources: Callable[[Node], Iterable[Node]]) -> list[list[Node]]:
    """Strongly connected components of all that `starts` need, sources first (Tarjan, without recursion)."""
    number: dict[Node, int] = {}
    low: dict[Node, int] = {}
    open_: dict[Node, None] = {}
    found: list[list[Node]] = []
    for start in starts:
        work = [(start, iter(sources(start)))] if start not in number else []
        while work:
            node, rest = work[-1]
            if node not in number:
                number[node] = low[node] = len(number)
                open_[node] = None
            after = next(rest, None)
            if after is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    names = list(open_)
                    circle = names[names.index(node) :]
                    for each in circle:
                        del open_[each]
                    found.append(circle)
            elif after not in number:
                work.append((after, iter(sources(after))))
            elif after in open_:
                low[node] = min(low[node], number[after])
    return found
