"""A region that runs again and again, written as a loop of the program.

What a trip hands to the next one lies in two buffers that change places (`Carry`); what is cut along an axis, and
results that are collected, are slices at an address with the loop's counter. A loop of one trip is unrolled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ...base.dims import Dim, Symbol, Symbolic, bounds, maximum, symbols, upper
from ...base.dtypes import bool_, i64
from ...base.names import c_identifier
from ...base.records import dataclass
from ...base.tensor import Shape, TensorType
from ...expr.ir import apply, literal, operand, size
from ...graph.ir import Graph, Value
from ...kinds.map import Map
from ...program.ir import Call, Carry, If, Item, Loop, Stop, View
from ..api import Invalid, Lowering, Unsupported
from ..control_flow import copy_into
from .at_run_time import is_given, measured
from .growing_sizes import growing_sizes

_COUNTER = -1
MANY = 2**31 - 1  # trips that nobody means: the loop ends by its condition


class Changes(Unsupported):
    """A carried value has other sizes after a trip than before it."""


class Grows(Changes):
    """A carried value is longer after each trip: by so much along one axis, where it has at most so many before."""

    def __init__(self, number: int, axis: int, by: int, most: int, rank: int, why: str, fix: str) -> None:
        super().__init__(why, fix)
        self.number, self.axis, self.by, self.most, self.rank = number, axis, by, most, rank
        self.may_broadcast = most == 1 and by > 1  # then later trips would leave it as it is


@dataclass(frozen=True)
class _Carried:
    output: int  # of the region, or _COUNTER
    carry: Carry


class LoopWriter:
    """Puts a region together with what it carries and collects into a loop of the program."""

    def __init__(self, to: Lowering, region: Graph, initial: list[View]) -> None:
        self.to, self.region, self.initial = to, region, initial
        self.bound: dict[int, View] = {}  # inputs of the region
        self.carried: list[_Carried] = []
        self.states: list[tuple[int, int]] = []  # (input, output) of the region
        self.collected: list[tuple[int, int, bool]] = []  # output of the region, axis, backwards
        self.condition: View | None = None
        self.counter: Dim | None = None
        self.room: Dim | None = None  # for what is collected, where that is known before the loop

    def bind(self, number: int, view: View) -> None:
        self.bound[number] = view

    def state(self, number: int, output: int) -> None:
        self.states.append((number, output))

    def collect(self, outputs: list[tuple[int, int, bool]]) -> None:
        self.collected = outputs

    def carry(self, number: int, start: View, output: int) -> None:
        """Input `number` of the region is what its `output` was in the trip before, and `start` in the first."""
        to = self.to
        name = self.region.inputs[number].name
        now = to.copy(start).buffer
        following = to.buffer(now.dtype, now.shape, f"{name}_next")
        last = to.buffer(now.dtype, now.shape, f"{name}_last")
        self.bound[number] = now.whole()
        self.carried.append(_Carried(output, Carry(now, following, last)))

    def run(self, trips: int | View, results: int, counter_input: int | None) -> None:
        """Appends the loop and binds the results: the states from 0 on, then what is collected."""
        if trips == 0:
            self.nothing()
        elif trips == 1 and self.condition is None:
            self.once(counter_input)
        else:
            self.loop(trips, counter_input)

    def bounded(self, trips: int | View, bound: int, counter_input: int) -> None:
        """A loop of so many trips that ends the run with a status where that is more than `bound`."""
        to = self.to
        if not isinstance(trips, View):
            fewer: int | View = bound
            more = to.constant(np.array(True), "true")
        else:
            fewer = to.map(apply("min", operand(0, i64), literal(bound, i64)), [trips])
            more = to.map(apply("greater", operand(0, i64), literal(bound, i64)), [trips])
        self.run(fewer, 1 + len(self.states), counter_input)
        if self.condition is not None:  # did it want to go on?
            last = next((c.carry.last.whole() for c in self.carried if c.output == 0), self.condition)
            after = to.reshape(last, ())
            full = apply("equal", operand(2, i64), literal(bound, i64))
            wanted = apply("and", operand(0, bool_), operand(1, bool_))
            more = to.map(apply("and", wanted, full), [more, after, self.trips_made()])
        stop = Stop(f"the loop runs more often than {bound} times", to.provenance, "SIZE")
        to.body.append(If(more, [stop], [], to.provenance))

    def trips_made(self) -> View:
        """After the loop, how often it ran."""
        counters = (self.to.reshape(c.carry.last.whole(), ()) for c in self.carried if c.output == _COUNTER)
        return next(counters, self.to.constant(np.array(0, np.int64), "trips"))

    def counted(self, dim: Dim) -> None:
        """What was collected has as many elements as there were trips: checked where that is known, else measured."""
        to = self.to
        if is_given(to, dim):
            wrong = to.map(apply("not", apply("equal", operand(0, i64), size(dim))), [self.trips_made()])
            stop = Stop(f"the loop does not run {dim} times", to.provenance, "SIZE")
            to.body.append(If(wrong, [stop], [], to.provenance))
        else:
            measured(to, dim, self.trips_made())

    def nothing(self) -> None:
        to = self.to
        for position, _ in enumerate(self.states):
            if to.wants(position):
                to.set(position, self.initial[position])
        for position in range(len(self.states), len(to.node.outputs)):
            if to.wants(position):
                type = to.type(position)
                to.set(position, to.map(literal(0, type.dtype), [], type.shape))

    def once(self, counter_input: int | None) -> None:
        to = self.to
        if counter_input is not None:
            self.bind(counter_input, self.first_trip(counter_input))
        for (number, _), start in zip(self.states, self.initial, strict=True):
            self.bind(number, start)
        made = to.region(0, to.body, self.views())
        for position, (_, output) in enumerate(self.states):
            if to.wants(position):
                to.set(position, made[output])
        for position, (output, axis, _) in enumerate(self.collected, len(self.states)):
            if to.wants(position):
                view = made[output]
                shape, strides = list(view.shape), list(view.strides)
                shape.insert(axis, 1)
                strides.insert(axis, 0)
                to.set(position, replace(view, shape=tuple(shape), strides=tuple(strides)))

    def loop(self, trips: int | View, counter_input: int | None) -> None:
        to = self.to
        counter, symbolic = self.named_counter(trips, counter_input)
        for (number, output), start in zip(self.states, self.initial, strict=True):
            nothing = start.type.is_static and start.type.count == 0
            if nothing or seen_through(self.region.outputs[output]) is self.region.inputs[number]:
                self.bind(number, start)  # never changes
            else:
                self.carry(number, start, output)
        if counter_input is not None:  # as a number in memory, for operators that compute with it
            self.carry(counter_input, self.first_trip(counter_input), _COUNTER)
        body: list[Item] = []
        made = to.region(0, body, self.views())
        for carried in self.carried:
            if carried.output != _COUNTER:
                following = carried.carry.next.whole()
                body.append(copy_into(following, _seen_in(made[carried.output], following.shape), to))
        stacks: dict[int, View] = {}
        for position, (output, axis, backwards) in enumerate(self.collected, len(self.states)):
            if to.wants(position):
                type = to.type(position)
                at = 0 if symbolic is None else symbolic
                room = bounds(at)[1] + 1 if self.room is None else self.room
                stack = to.buffer(type.dtype, (*type.shape[:axis], room, *type.shape[axis + 1 :])).whole()
                body.append(copy_into(slice_at(stack, axis, at, room, backwards), made[output], to))
                stacks[position] = replace(stack, shape=type.shape) if axis == 0 else stack
        more = apply("add", operand(0, i64), literal(1, i64))
        for carried in self.carried:
            if carried.output == _COUNTER:  # last, so that nobody needs the old value any more
                pair = carried.carry
                body.append(Call(Map(more), (pair.now.whole(),), (pair.next.whole(),), to.provenance))
        carries = [carried.carry for carried in self.carried]
        to.body.append(Loop(counter, trips, carries, self.condition, body, to.provenance))
        by_output = {carried.output: carried.carry.last.whole() for carried in self.carried}
        for position, (number, output) in enumerate(self.states):
            if to.wants(position):
                to.set(position, by_output.get(output, self.bound[number]))
        for position, stack in stacks.items():
            to.set(position, stack)

    def first_trip(self, counter_input: int) -> View:
        shape = self.region.inputs[counter_input].type.static_shape
        return self.to.constant(np.zeros(shape, np.int64), "trip")

    def named_counter(self, trips: int | View, counter_input: int | None) -> tuple[Symbol, Dim | None]:
        """The counter as the addresses in the region know it."""
        if self.counter is None and counter_input is not None:
            value = self.region.inputs[counter_input].fact.value
            self.counter = value.item() if value is not None else None
        if isinstance(self.counter, Symbolic):
            (found,) = symbols(self.counter)
            return found, self.counter
        high = trips - 1 if isinstance(trips, int) else MANY
        return Symbol(counter_name(self.to.provenance[0]), 0, high), None

    def views(self) -> list[View]:
        return [self.bound[number] for number in range(len(self.region.inputs))]


def _seen_in(view: View, shape: Shape) -> View:
    """A condition is a scalar or a vector of one element, whichever its readers take."""
    if view.type.count != 1 or view.shape == shape:
        return view
    return replace(view, shape=shape, strides=(1,) * len(shape))


def slice_at(view: View, axis: int, counter: Dim, trips: Dim, backwards: bool) -> View:
    """The part of an axis that belongs to a trip."""
    place = maximum(trips - 1 - counter, 0) if backwards else counter
    part = view.sliced(axis, place, 1)
    return replace(part, shape=without_axis(part.shape, axis), strides=without_axis(part.strides, axis))


def stacked(type: TensorType, axis: int, trips: Dim, body: Graph, counter: Value | None = None) -> TensorType:
    """What is collected of a result of the region. Where nothing is, sizes that only a trip would tell are 0."""
    own = symbols(counter.fact.value.item()) if counter is not None and counter.fact.value is not None else set()
    if trips != 0 and any(isinstance(dim, Symbolic) for dim in type.shape):
        own |= growing_sizes(body)
    if any(own & symbols(dim) for dim in type.shape):
        why = f"what it collects is {type} in each trip; sizes that change from trip to trip cannot be planned"
        raise Unsupported(why, "collect a tensor of the largest size, and a number that says how much of it is used")
    shape = [0 if trips == 0 and isinstance(dim, Symbolic) else dim for dim in type.shape]
    return TensorType(type.dtype, (*shape[:axis], trips, *shape[axis:]))


def without_axis(shape: tuple[Dim, ...], axis: int) -> tuple[Dim, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def counter_name(node: str) -> str:
    return f"trip_{c_identifier(node)}"


def seen_through(value: Value) -> Value:
    """What a value is, seen through operators that hand it on."""
    while value.producer is not None and value.producer.op.name == "Identity" and value.producer.inputs[0] is not None:
        value = value.producer.inputs[0]
    return value


def check_states(initial: Sequence[TensorType], after: Sequence[Value]) -> None:
    for number, (before, value) in enumerate(zip(initial, after, strict=True)):
        if before.dtype is not value.type.dtype:
            raise Invalid(f"carried value {number} is {before} before the loop and {value.type} after a trip")
        if before != value.type:
            why = f"carried value {number} is {before} before the loop and {value.type} after a trip"
            why += "; sizes that change from trip to trip cannot be planned"
            fix = "carry a tensor of the largest size, and a number that says how much of it is used"
            raise _growth(number, before, value.type, why, fix) or Changes(why, fix)


def _growth(number: int, before: TensorType, after: TensorType, why: str, fix: str) -> Grows | None:
    if before.rank != after.rank:
        return None
    pairs = zip(before.shape, after.shape, strict=True)
    changed = [(axis, high - low) for axis, (low, high) in enumerate(pairs) if low != high]
    if len(changed) != 1 or not isinstance(changed[0][1], int) or changed[0][1] < 0:
        return None
    axis, by = changed[0][0], int(changed[0][1])
    return Grows(number, axis, by, upper(before.shape[axis]), before.rank, why, fix)
