"""Loop and Scan: a region that runs again and again, as a loop of the program.

What a trip hands to the next one lies in two buffers that change places (`Carry`); inputs that are cut along an axis,
and results that are collected, are slices at an address with the loop's counter. A loop of one trip is written out.
Sizes must not change from trip to trip. Where the number of trips is known only at run time and results are collected,
their counter has a bound: a run that would need more trips ends with a status, and how many there were is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..base.dims import Dim, Symbol, Symbolic, bounds, symbol, symbols
from ..base.dtypes import bool_, i64
from ..base.names import c_identifier
from ..base.tensor import TensorType
from ..expr.ir import apply, literal, operand
from ..graph.ir import Graph, Limit, Node, Value
from ..kinds.map import Map
from ..program.ir import Call, Carry, If, Item, Stop, View
from ..program.ir import Loop as LoopItem
from .api import Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .at_run_time import measured
from .control_flow import copy_into

_COUNTER = -1
_MANY = 2**31 - 1  # trips that nobody means: the loop ends by its condition


@dataclass(frozen=True)
class Loop(Operator):
    """Operands: trip count, condition, first values. The region: counter, condition, values -> condition, values,
    collected."""

    name = "Loop"
    versions = (1, 11, 13, 16, 19, 21, 23, 24, 25)
    bounded = (0,)

    @classmethod
    def region_inputs(cls, node: OnnxNode, index: int) -> Sequence[Fact] | None:
        operands = [None if value is None else value.fact for value in node.inputs]
        trips = _known_trips(Site(tuple(operands), node.outputs))
        counter = _counter_fact(node.name, _most_trips(node) if trips is None else trips)
        states = [Fact(fact.type) for fact in operands[2:] if fact is not None]
        return [counter, Fact(TensorType(bool_, ())), *states]

    def infer(self, site: Site) -> list[Fact]:
        body = site.regions[0]
        states = len(site.facts) - 2
        self.check(site, body, states)
        collected = [value.type for value in body.outputs[1 + states :]]
        facts = [Fact(value.type) for value in body.outputs[1 : 1 + states]]
        if collected:
            trips = self.collected(site, body, states)
            facts += [Fact(TensorType(type.dtype, (trips, *type.shape))) for type in collected]
        return facts

    def check(self, site: Site, body: Graph, states: int) -> None:
        if site.has(0) and (site.type(0).dtype is not i64 or site.type(0).count != 1):
            raise Invalid(f"the trip count is {site.type(0)}, not one i64")
        if site.has(1) and (site.type(1).dtype is not bool_ or site.type(1).count != 1):
            raise Invalid(f"the condition is {site.type(1)}, not one bool")
        if states < 0 or len(body.inputs) != 2 + states or len(body.outputs) < 1 + states:
            raise Invalid(
                f"with {max(states, 0)} carried values its body has {len(body.inputs)} inputs "
                f"and {len(body.outputs)} outputs"
            )
        if body.outputs[0].type.dtype is not bool_ or body.outputs[0].type.count != 1:
            raise Invalid(f"its body gives {body.outputs[0].type} as the condition, not one bool")
        if not site.has(0) and not _ends_early(site, body):
            raise Invalid("it has no trip count, and its condition is always true: it never ends")
        _check_states([site.type(2 + n) for n in range(states)], body.outputs[1 : 1 + states])

    def collected(self, site: Site, body: Graph, states: int) -> Dim:
        """How many elements it collects: as many as there are trips."""
        trips = _known_trips(site)
        if trips is not None and not _ends_early(site, body):
            return trips
        results = range(states, site.outputs)
        present = [n for n in results if n < len(site.results) and site.results[n] is not None]
        if site.name and trips is None and not any(_said(limit) for limit in site.limits[states:]):
            for number in present:  # what the model declares is what it will be
                declared = site.results[number]
                if declared is not None and declared.rank and isinstance(declared.shape[0], int):
                    return declared.shape[0]
        return site.size(present[0] if present else states, 0, _bound(body))

    def lower(self, to: Lowering) -> None:
        site, body = to.site, to.node.regions[0]
        states = len(to.node.inputs) - 2
        trips = _known_trips(site)
        writer = _Writer(to, body, [to.input(2 + n) for n in range(states)])
        first = _source(body.inputs[1])
        early = _ends_early(site, body)
        true = to.constant(np.array(True), "true")
        if not early:
            writer.bind(1, true)
        elif _source(body.outputs[0]) is first:
            writer.bind(1, to.reshape(to.input(1), ()))
            writer.condition = writer.bound[1]
        else:
            writer.carry(1, to.reshape(to.input(1) if to.has(1) else true, ()), 0)
            writer.condition = writer.bound[1]
        for number in range(states):
            writer.state(2 + number, 1 + number)
        writer.collect([(1 + states + n, 0, False) for n in range(len(body.outputs) - 1 - states)])
        count: int | View = _MANY if trips is None else trips
        if trips is None and site.has(0):
            count = to.reshape(to.input(0), ())
        bound = _bound(body)
        if trips is None and bound is not None:
            writer.bounded(count, bound, 0)
        else:
            writer.run(count, 1 + states, 0)
        dims = [to.type(n).shape[0] for n in range(states, len(to.node.outputs)) if to.wants(n)]
        if dims and (trips is None or early):
            writer.counted(dims[0])


@dataclass(frozen=True)
class Scan(Operator):
    """Operands: first values, then what is cut into slices. The region: values, slices -> values, collected slices."""

    name = "Scan"
    versions = (8, 9, 11, 16, 19, 21, 23, 24, 25)
    num_scan_inputs: int
    scan_input_axes: tuple[int, ...] = ()
    scan_input_directions: tuple[int, ...] = ()
    scan_output_axes: tuple[int, ...] = ()
    scan_output_directions: tuple[int, ...] = ()

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        return _over_samples(node) if node.version < 9 else make(cls, node)

    @classmethod
    def region_inputs(cls, node: OnnxNode, index: int) -> Sequence[Fact] | None:
        types = [value.type for value in node.inputs if value is not None]
        if node.version < 9:
            types = [_sample(type) for type in types]
        count = node.attributes["num_scan_inputs"]
        axes = node.attributes.get("scan_input_axes", ())
        if not 0 < count <= len(types):
            raise Invalid(f"it has {len(types)} operands, of which {count} shall be cut into slices")
        states, cut = types[:-count], types[-count:]
        axes = _axes(axes, [type.rank for type in cut])
        slices = [TensorType(t.dtype, _without(t.shape, axis)) for t, axis in zip(cut, axes, strict=True)]
        return [Fact(type) for type in (*states, *slices)]

    def infer(self, site: Site) -> list[Fact]:
        body = site.regions[0]
        states = len(site.facts) - self.num_scan_inputs
        if len(body.inputs) != len(site.facts) or not states <= len(body.outputs):
            raise Invalid(
                f"its body has {len(body.inputs)} inputs and {len(body.outputs)} outputs for {len(site.facts)} operands"
            )
        _check_states([site.type(n) for n in range(states)], body.outputs[:states])
        trips = self.trips(site)
        facts = [Fact(value.type) for value in body.outputs[:states]]
        collected = [value.type for value in body.outputs[states:]]
        axes = _axes(self.scan_output_axes, [type.rank + 1 for type in collected])
        for type, axis in zip(collected, axes, strict=True):
            facts.append(Fact(TensorType(type.dtype, (*type.shape[:axis], trips, *type.shape[axis:]))))
        return facts

    def cut(self, site: Site) -> list[tuple[int, int]]:
        """Operand and axis of what is cut into slices."""
        first = len(site.facts) - self.num_scan_inputs
        operands = range(first, len(site.facts))
        axes = _axes(self.scan_input_axes, [site.type(n).rank for n in operands])
        return list(zip(operands, axes, strict=True))

    def trips(self, site: Site) -> int:
        sizes: list[Dim] = [site.shape(number)[axis] for number, axis in self.cut(site)]
        if any(size != sizes[0] for size in sizes):
            raise Invalid(f"its operands have {', '.join(map(str, sizes))} slices")
        if not isinstance(sizes[0], int):
            raise Unsupported(
                f"the number of trips, {sizes[0]}, is known only at run time", "fix it with --dim or --shape"
            )
        return sizes[0]

    def lower(self, to: Lowering) -> None:
        site, body = to.site, to.node.regions[0]
        states = len(site.facts) - self.num_scan_inputs
        trips = self.trips(site)
        writer = _Writer(to, body, [to.input(n) for n in range(states)])
        counter = symbol(_counter_name(to.provenance[0]), 0, max(trips - 1, 0))
        for number in range(states):
            writer.state(number, number)
        directions = self.scan_input_directions or (0,) * self.num_scan_inputs
        for (number, axis), backwards in zip(self.cut(site), directions, strict=True):
            writer.bind(number, _slice(to.input(number), axis, counter, trips, bool(backwards)))
        count = len(body.outputs) - states
        axes = _axes(self.scan_output_axes, [value.type.rank + 1 for value in body.outputs[states:]])
        directions = self.scan_output_directions or (0,) * count
        parts = zip(range(states, states + count), axes, directions, strict=True)
        writer.collect([(number, axis, bool(backwards)) for number, axis, backwards in parts])
        writer.counter = counter
        writer.run(trips, states, None)


def _sample(type: TensorType) -> TensorType:
    if not type.rank:
        raise Invalid(f"{type} has no axis for samples")
    return TensorType(type.dtype, type.shape[1:])


def _over_samples(node: OnnxNode) -> Scan:
    """Scan as opset 8 had it, one sample after the other: a Scan over the samples, with a Scan in it."""
    lengths, *operands = node.inputs
    present = [value for value in operands if value is not None]
    if lengths is not None or len(present) < len(operands):
        raise Unsupported("the sequences have lengths of their own", "export the model with opset 9 or later")
    directions = tuple(node.attributes.get("directions", ()))
    each = Scan(node.attributes["num_scan_inputs"], scan_input_directions=directions)
    inputs = [Value(f"{node.name}/sample_{n}", Fact(_sample(value.type))) for n, value in enumerate(present)]
    inner = Node(each, inputs, [None] * node.outputs, (node.name,), node.regions)
    facts = each.infer(inner.site())
    results = [Value(f"{node.name}/sample_result_{n}", fact) for n, fact in enumerate(facts)]
    inner.outputs = [*results]
    samples = Graph(f"{node.name}/samples", inputs, results)
    samples.add(inner)
    node.inputs, node.regions = [*present], (samples,)
    return Scan(len(present))


@dataclass(frozen=True)
class _Carried:
    output: int  # of the region, or _COUNTER
    carry: Carry


class _Writer:
    """Puts a region together with what it carries and collects into a loop of the program."""

    def __init__(self, to: Lowering, region: Graph, initial: list[View]) -> None:
        self.to, self.region, self.initial = to, region, initial
        self.bound: dict[int, View] = {}  # inputs of the region
        self.carried: list[_Carried] = []
        self.states: list[tuple[int, int]] = []  # (input, output) of the region
        self.collected: list[tuple[int, int, bool]] = []  # output of the region, axis, backwards
        self.condition: View | None = None
        self.counter: Dim | None = None

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
            after = next((c.carry.last.whole() for c in self.carried if c.output == 0), self.condition)
            full = apply("equal", operand(2, i64), literal(bound, i64))
            wanted = apply("and", operand(0, bool_), operand(1, bool_))
            more = to.map(apply("and", wanted, full), [more, after, self.trips_made()])
        stop = Stop(f"the loop runs more often than {bound} times", to.provenance, "SIZE")
        to.body.append(If(more, [stop], [], to.provenance))

    def trips_made(self) -> View:
        """After the loop, how often it ran."""
        counters = (c.carry.last.whole() for c in self.carried if c.output == _COUNTER)
        return next(counters, self.to.constant(np.array(0, np.int64), "trips"))

    def counted(self, dim: Dim) -> None:
        """What was collected has as many elements as there were trips."""
        to = self.to
        if isinstance(dim, int):
            wrong = to.map(apply("not", apply("equal", operand(0, i64), literal(dim, i64))), [self.trips_made()])
            stop = Stop(f"the loop does not run {dim} times, as the model declares", to.provenance, "SIZE")
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
            self.bind(counter_input, to.constant(np.array(0, np.int64), "trip"))
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
            if _source(self.region.outputs[output]) is self.region.inputs[number]:
                self.bind(number, start)  # never changes
            else:
                self.carry(number, start, output)
        if counter_input is not None:  # as a number in memory, for operators that compute with it
            self.carry(counter_input, to.constant(np.array(0, np.int64), "trip"), _COUNTER)
        body: list[Item] = []
        made = to.region(0, body, self.views())
        for carried in self.carried:
            if carried.output != _COUNTER:
                body.append(copy_into(carried.carry.next.whole(), made[carried.output], to))
        stacks: dict[int, View] = {}
        for position, (output, axis, backwards) in enumerate(self.collected, len(self.states)):
            if to.wants(position):
                type = to.type(position)
                at = 0 if symbolic is None else symbolic
                room = bounds(at)[1] + 1
                stack = to.buffer(type.dtype, (*type.shape[:axis], room, *type.shape[axis + 1 :])).whole()
                body.append(copy_into(_slice(stack, axis, at, room, backwards), made[output], to))
                stacks[position] = replace(stack, shape=type.shape) if axis == 0 else stack
        more = apply("add", operand(0, i64), literal(1, i64))
        for carried in self.carried:
            if carried.output == _COUNTER:  # last, so that nobody needs the old value any more
                pair = carried.carry
                body.append(Call(Map(more), (pair.now.whole(),), (pair.next.whole(),), to.provenance))
        carries = [carried.carry for carried in self.carried]
        to.body.append(LoopItem(counter, trips, carries, self.condition, body, to.provenance))
        by_output = {carried.output: carried.carry.last.whole() for carried in self.carried}
        for position, (number, output) in enumerate(self.states):
            if to.wants(position):
                to.set(position, by_output.get(output, self.bound[number]))
        for position, stack in stacks.items():
            to.set(position, stack)

    def named_counter(self, trips: int | View, counter_input: int | None) -> tuple[Symbol, Dim | None]:
        """The counter as the addresses in the region know it."""
        if self.counter is None and counter_input is not None:
            value = self.region.inputs[counter_input].fact.value
            self.counter = value.item() if value is not None else None
        if isinstance(self.counter, Symbolic):
            (found,) = symbols(self.counter)
            return found, self.counter
        high = trips - 1 if isinstance(trips, int) else _MANY
        return Symbol(_counter_name(self.to.provenance[0]), 0, high), None

    def views(self) -> list[View]:
        return [self.bound[number] for number in range(len(self.region.inputs))]


def _slice(view: View, axis: int, counter: Dim, trips: int, backwards: bool) -> View:
    """The part of an axis that belongs to a trip."""
    place = trips - 1 - counter if backwards else counter
    part = view.sliced(axis, place, 1)
    return replace(part, shape=_without(part.shape, axis), strides=_without(part.strides, axis))


def _without(shape: tuple[Dim, ...], axis: int) -> tuple[Dim, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _axes(axes: Sequence[int], ranks: Sequence[int]) -> list[int]:
    """One axis for each tensor, counted from 0; 0 where none are given."""
    if axes and len(axes) != len(ranks):
        raise Invalid(f"there are {len(axes)} axes for {len(ranks)} tensors")
    if 0 in ranks:
        raise Invalid("a scalar cannot be cut into slices")
    return [normal_axis(axis, rank) for axis, rank in zip(axes or [0] * len(ranks), ranks, strict=True)]


def _counter_name(node: str) -> str:
    return f"trip_{c_identifier(node)}"


def _counter_fact(node: str, trips: int | None) -> Fact:
    type = TensorType(i64, ())
    if trips is None or trips < 1:
        return Fact(type)
    value = np.empty((), dtype=object)
    value[()] = symbol(_counter_name(node), 0, trips - 1)
    return Fact(type, value)


def _said(limit: Limit) -> bool:
    return limit.most(0) is not None


def _most_trips(node: OnnxNode) -> int | None:
    """The most trips that a loop can make whose trip count is known only at run time, where something bounds it."""
    states = max(len(node.inputs) - 2, 0)
    said = [node.most[0]] if 0 in node.most else []
    said += [most for limit in node.limits[states:] if (most := limit.most(0)) is not None]
    if said:
        return max(min(said), 1)
    declared = [type.shape[0] for type in node.results[states:] if type is not None and type.rank]
    sizes = [size for size in declared if isinstance(size, int)]
    otherwise = node.limits[0].otherwise if node.limits and node.outputs > states else None
    return max(min(sizes), 1) if sizes else otherwise


def _bound(body: Graph) -> int | None:
    """The most trips that addresses in the body allow."""
    value = body.inputs[0].fact.value
    return bounds(value.item())[1] + 1 if value is not None else None


def _known_trips(site: Site) -> int | None:
    """The trip count, where it is known and meant to be one."""
    value = site.value(0)
    if value is None or value.size != 1 or not isinstance(value.item(), int):
        return None
    return max(0, value.item()) if value.item() < _MANY else None


def _ends_early(site: Site, body: Graph) -> bool:
    """Can the condition end the loop before its trip count?"""
    start = True
    if site.has(1):
        known = site.value(1)
        start = known is not None and known.size == 1 and known.item() is True
    after = _source(body.outputs[0])
    if after is body.inputs[1]:
        return not start
    known = after.fact.value
    return not (
        start and known is not None and known.size == 1 and bool(known.item()) and isinstance(known.item(), int)
    )


def _source(value: Value) -> Value:
    """What a value is, seen through operators that hand it on."""
    while value.producer is not None and value.producer.op.name == "Identity" and value.producer.inputs[0] is not None:
        value = value.producer.inputs[0]
    return value


def _check_states(initial: Sequence[TensorType], after: Sequence[Value]) -> None:
    for number, (before, value) in enumerate(zip(initial, after, strict=True)):
        if before.dtype is not value.type.dtype:
            raise Invalid(f"carried value {number} is {before} before the loop and {value.type} after a trip")
        if before != value.type:
            raise Unsupported(
                f"carried value {number} is {before} before the loop and {value.type} after a trip; sizes that change "
                "from trip to trip cannot be planned",
                "carry a tensor of the largest size, and a number that says how much of it is used",
            )
