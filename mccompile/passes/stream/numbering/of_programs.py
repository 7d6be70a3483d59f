"""The numbers of all elements that a program computes, call by call.

Invariant: a program runs here as it would run: views address buffers, loops take turns, carried buffers change places.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

import numpy as np

from ....base.dims import evaluate, static
from ....expr.evaluate import evaluate as value_of
from ....kinds.map import Map
from ....program.ir import (
    CONSTANT,
    Buffer,
    Call,
    If,
    Item,
    Loop,
    Measure,
    Program,
    Rows,
    Stop,
    View,
    reads,
    walk,
    writes,
)
from . import along_axes, numbered_moves, sliding_numbers  # noqa: F401 (each tells its rules)
from .kind_rules import Operands, results_of
from .numbers import Numbers, joined, named, of_values


class Unnumbered(Exception):
    """Something in a program has no rule here."""


class Run:
    """One run of a program, or several at once: those of the pushes along axis 0 of the inputs."""

    def __init__(self, program: Program, watched: Callable[[Call, Numbers], None] | None = None) -> None:
        self.program, self.watched = program, watched  # who is told what each call makes
        self.memory: dict[Buffer, Numbers] = {}  # [pushes, elements]
        self.known: dict[Buffer, np.ndarray] = {}
        self.counters: dict[str, int] = {}

    def results(self, inputs: Mapping[str, Numbers]) -> dict[str, Numbers]:
        """Of the outputs, by name; inputs are [pushes, ...]."""
        self.give(inputs)
        last = self._last_uses()
        for number, item in enumerate(self.program.body):
            self.do(item)
            for buffer in last.get(number, ()):
                self.memory.pop(buffer, None)
        return {name: self.read(view) for name, view in self.program.outputs}

    def give(self, inputs: Mapping[str, Numbers]) -> None:
        for name, buffer in self.program.inputs:
            if name in inputs:
                self.memory[buffer] = inputs[name].reshape(inputs[name].shape[0], -1)

    def _last_uses(self) -> dict[int, list[Buffer]]:
        last: dict[Buffer, int] = {}
        for number, item in enumerate(self.program.body):
            for inner in walk([item]):
                last.update({view.buffer: number for view in reads(inner)})
        kept = {view.buffer for _, view in self.program.outputs}
        found: dict[int, list[Buffer]] = {}
        for buffer, number in last.items():
            if buffer not in kept:
                found.setdefault(number, []).append(buffer)
        return found

    def do(self, item: Item) -> None:
        match item:
            case Call():
                self._call(item)
            case Loop():
                self._loop(item)
            case If():
                self._branches(item)
            case Stop():
                pass
            case Measure() | Rows():
                raise Unnumbered(f"{type(item).__name__} in a window")

    def _call(self, call: Call) -> None:
        known = [self._known(view) for view in call.ins]
        shapes = [tuple(map(static, view.shape)) for view in call.outs]
        if isinstance(call.kind, Map) and all(each is not None for each in known):
            values = value_of(call.kind.expr, [each for each in known if each is not None], shapes[0])
            if call.outs[0].covers_buffer:
                self.known[call.outs[0].buffer] = values.reshape(-1)
            self.write(call.outs[0], of_values(values)[None])
            return
        operands = Operands([self.read(view) for view in call.ins], known, shapes)
        results = results_of(call.kind, operands)
        for view, numbers in zip(call.outs, results, strict=True):
            self.write(view, numbers)
        if self.watched:
            self.watched(call, results[0])

    def _loop(self, loop: Loop) -> None:
        trips, told = self._trips(loop)
        for trip in range(trips):
            self.counters[loop.counter.name] = trip
            if loop.condition is not None:
                told.append(joined("while", *told[-1:], self.read(loop.condition).reshape(-1, 1)))
            for item in loop.body:
                self.do(item)
            for carry in loop.carries:
                self.memory[carry.now] = self.memory.pop(carry.next)
        for carry in loop.carries:
            self.memory[carry.last] = self.memory[carry.now]
        if told:  # whatever it writes depends on how far it went
            for buffer in {view.buffer for item in walk([loop]) for view in writes(item)} & self.memory.keys():
                self.memory[buffer] = joined("as often as", self.memory[buffer], told[-1])

    def _trips(self, loop: Loop) -> tuple[int, list[Numbers]]:
        """How many there are at most, and what says how many there are."""
        if not isinstance(loop.trips, View):
            return static(loop.trips), []
        values = self._known(loop.trips)
        if values is not None:
            return int(values.reshape(-1)[0]), []
        return loop.counter.high + 1, [joined("trips", self.read(loop.trips).reshape(-1, 1))]

    def _branches(self, item: If) -> None:
        """A result of either branch, whichever it will be."""
        condition = self.read(item.condition).reshape(-1, 1)
        before = dict(self.memory)
        found: list[dict[Buffer, Numbers]] = []
        for body in (item.then, item.otherwise):
            self.memory = dict(before)
            for inner in body:
                self.do(inner)
            found.append(self.memory)
        self.memory = before
        for buffer in found[0].keys() & found[1].keys() - before.keys():
            self.memory[buffer] = joined("if", condition, found[0][buffer], found[1][buffer])

    # -- memory

    def read(self, view: View) -> Numbers:
        return seen(self.buffer(view.buffer), view, self.counters)

    def write(self, view: View, numbers: Numbers) -> None:
        shape = tuple(map(static, view.shape))
        numbers = np.broadcast_to(numbers, (numbers.shape[0], *shape))
        if view.covers_buffer:
            self.memory[view.buffer] = np.ascontiguousarray(numbers).reshape(numbers.shape[0], -1)
            return
        pushes, count = numbers.shape[0], static(view.buffer.type.count)
        there = self.memory.get(view.buffer)
        if there is None:
            there = np.broadcast_to(named("never written"), (pushes, count)).copy()
        elif len(there) < pushes or not there.flags.writeable:
            there = np.broadcast_to(there, (max(pushes, len(there)), count)).copy()
        self.memory[view.buffer] = there
        seen(there, view, self.counters)[...] = numbers

    def buffer(self, buffer: Buffer) -> Numbers:
        if buffer.role == CONSTANT and buffer not in self.memory:
            assert buffer.constant is not None
            self.memory[buffer] = of_values(buffer.constant.array).reshape(1, -1)
        if buffer not in self.memory:
            raise Unnumbered(f"{buffer.name} is read before it is written")
        return self.memory[buffer]

    def _known(self, view: View) -> np.ndarray | None:
        constant, buffer = view.buffer.constant, view.buffer
        values = constant.array if constant is not None else self.known.get(buffer)
        return None if values is None else np.asarray(seen(values.reshape(1, -1), view, self.counters)[0])


def seen(memory: np.ndarray, view: View, counters: Mapping[str, int]) -> np.ndarray:
    """A view on elements [pushes, elements]."""
    shape = (memory.shape[0], *map(static, view.shape))
    if 0 in shape:
        return np.empty(shape, memory.dtype)
    first = evaluate(view.offset, counters)
    strides = (memory.strides[0], *(static(stride) * memory.strides[1] for stride in view.strides))
    return np.lib.stride_tricks.as_strided(memory[:, first:], shape, strides)


def inputs(name: str, shape: Sequence[int], axis: int | None = None, first: int = 0, pushes: int = 1) -> Numbers:
    """An input whose elements are all unlike. Along `axis` they are frames, counted from `first` on and those of the
    next push behind them."""
    beside = [1 if each == axis else size for each, size in enumerate(shape)]
    inside = np.arange(prod(beside), dtype=np.uint64).reshape((1, *beside))
    if axis is None:
        return joined(f"input {name}", inside)
    frame = np.arange(first, first + pushes * shape[axis], dtype=np.int64).astype(np.uint64)
    across = (pushes, *(size if each == axis else 1 for each, size in enumerate(shape)))
    return joined(f"input {name}", inside, frame.reshape(across))
