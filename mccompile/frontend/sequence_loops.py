"""Loops that carry sequences or optional values.

Where the number of trips is known and small the loop is unrolled, so that positions and sizes stay known. Any
other loop carries slots; how much room they need follows from what a trip adds and how many trips there can be, or is
said by the user. Invariant: a run that would need more room ends with a status.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from onnx import GraphProto, NodeProto, numpy_helper

from ..base.dtypes import DType, bool_, i64
from ..base.structures import Items, Maybe, SlotCapacity, Slots, Structure, leaves
from ..base.tensor import TensorType
from ..graph.ir import Fact, Graph, Invalid, Limit, Unsupported, Value
from ..graph.refusals import bound_flag
from ..ops.api import OnnxNode, resolve
from .declarations import declared_ranks, declared_shapes
from .regions import RegionReader
from .scope import Found, Scope, ScopedValue
from .sequences import sequence
from .slots import Sequence_, Writer, as_slots, room_of

MOST_WRITTEN_OUT = 64  # trips
_ATTEMPTS = 8  # to find how large elements become


def loop(
    reader: RegionReader, node: NodeProto, graph: GraphProto, operands: Sequence[ScopedValue | None], scope: Scope
) -> Sequence[Found] | None:
    """The results; None where the body could not be read, and why has been said."""
    return _Loop(reader, node, graph, operands, scope).run()


class _Loop:
    def __init__(
        self,
        reader: RegionReader,
        node: NodeProto,
        graph: GraphProto,
        operands: Sequence[ScopedValue | None],
        scope: Scope,
    ) -> None:
        self.reader, self.node, self.graph, self.scope = reader, node, graph, scope
        self.origin = scope.origin(node)
        self.writer = reader.writer(scope, self.origin)
        given = [*operands, None, None][: max(len(operands), 2)]
        self.trips, self.condition = (self.tensor(value) for value in given[:2])
        said = reader.limits.of_value(scope.known_as(node.input[0])) if node.input else Limit()
        bound = said.most(0) if said.most(0) is not None else said.otherwise
        # of trips, where their number is known only at run time
        self.most_trips: dict[int, int] = {} if bound is None else {0: bound}
        self.states: list[ScopedValue] = []
        for value in given[2:]:
            if value is None:
                raise Invalid("a carried value is missing")
            self.states.append(value)
        self.ranks = declared_ranks(graph)
        if len(graph.input) != 2 + len(self.states) or len(graph.output) < 1 + len(self.states):
            raise Invalid(
                f"with {len(self.states)} carried values its body has {len(graph.input)} inputs "
                f"and {len(graph.output)} outputs"
            )

    def tensor(self, value: ScopedValue | None) -> Value | None:
        if value is not None and not isinstance(value, Value):
            raise Invalid("the trip count or the condition is not a tensor")
        return value

    def run(self) -> Sequence[Found] | None:
        trips = self.writer.known(self.trips) if self.trips is not None else None
        collects = len(self.graph.output) > 1 + len(self.states)
        if trips is not None and (trips > 0 or not collects) and trips <= MOST_WRITTEN_OUT and self.never_ends_early():
            return self.written_out(max(trips, 0))
        return self.in_slots(trips)

    def never_ends_early(self) -> bool:
        """Does the condition stay true whatever happens?"""
        if self.condition is not None and not self.writer.known(self.condition):
            return False
        made = {name: node for node in self.graph.node for name in node.output}
        name = self.graph.output[0].name
        while name in made and made[name].op_type == "Identity":
            name = made[name].input[0]
        always = next((tensor for tensor in self.graph.initializer if tensor.name == name), None)
        return name == self.graph.input[1].name or (always is not None and bool(numpy_helper.to_array(always).all()))

    # -- unrolled trips

    def written_out(self, trips: int) -> Sequence[Found] | None:
        states = list(self.states)
        collected: list[list[Value]] = []
        for trip in range(trips):
            prefix, shapes = f"{self.origin}/{trip}/", declared_shapes(self.graph, {})
            inner = replace(self.scope, outer=self.scope, values={}, prefix=prefix, shapes=shapes, said={})
            self.reader.constants(self.graph, inner)
            given: list[Found] = [self.one(0, self.writer.number(trip)), self.one(1, self.writer.flag(True)), *states]
            inner.values |= dict(zip((entry.name for entry in self.graph.input), given, strict=True))
            self.reader.nodes(self.graph.node, inner)
            results = self.reader.results(self.graph, inner)
            if results is None:
                return None
            states = results[1 : 1 + len(states)]
            collected.append([_tensor(result) for result in results[1 + len(states) :]])
        stacked = []
        for parts in zip(*collected, strict=True):
            rows = [self.writer.op("Unsqueeze", part, self.writer.ints(0)) for part in parts]
            stacked.append(self.writer.op("Concat", *rows, axis=0))
        return [*states, *stacked]

    def one(self, position: int, value: Value) -> Value:
        """The counter or the condition, in the shape that the body declares."""
        return self.writer.op("Unsqueeze", value, self.writer.ints(0)) if self.ranks[position] else value

    # -- a loop that carries slots

    def in_slots(self, trips: int | None) -> Sequence[Found] | None:
        rooms = self.rooms()
        if rooms is None:
            return None
        for number, (room, growth) in rooms.items():
            if growth:
                most = self.most(number, trips, room, growth)
                rooms[number] = (replace(room, count=max(most, 1)), growth)
        first = [
            _formed(self.writer, state, rooms[number][0]) if number in rooms else state
            for number, state in enumerate(self.states)
        ]
        first = [_as_maybe(self.writer, state) if n in self.optional else state for n, state in enumerate(first)]
        flat = [value for state in first for value in leaves(state)]
        cls = resolve("", "Loop")
        call = self.call(flat)
        inner = self.body([_facts(state) for state in first])
        results = self.reader.results(self.graph, inner)
        if results is None:
            return None
        writer = self.reader.writer(inner, self.origin)
        for number, (room, _) in rooms.items():
            made = _formed(writer, results[1 + number], room)
            results[1 + number] = _as_maybe(writer, made) if number in self.optional else made
        self.reader.bind([output.name for output in self.graph.output], results, inner)
        call.regions = (inner.graph,)
        wholes = [*first, *results[1 + len(first) :]]
        outputs = [*self.node.output, *[""] * len(wholes)][: len(wholes)]
        names = [name or f"{self.origin}/unused_{number}" for number, name in enumerate(outputs)]
        return self.reader.append(cls, call, names, wholes, self.scope)[: len(self.node.output)]

    def call(self, states: Sequence[Value]) -> OnnxNode:
        operands = [self.trips, self.condition, *states]
        return OnnxNode(self.origin, 0, {}, operands, 0, self.writer.constant, ranks=[self.ranks], most=self.most_trips)

    def body(self, states: Sequence[Fact | Structure[Fact]]) -> Scope:
        """The body for such states; of tensors among them it is known how they count."""
        tensors = {number: state for number, state in enumerate(self.states) if isinstance(state, Value)}
        call = self.call([*tensors.values()])
        steps = self.reader.steps(self.graph, self.scope)
        call.steps = {2 + place: steps[2 + number] for place, number in enumerate(tensors) if 2 + number in steps}
        facts = resolve("", "Loop").region_inputs(call, 0)
        assert facts is not None
        known = dict(zip(tensors, facts[2:], strict=True))
        given = [known.get(number, state) for number, state in enumerate(states)]
        return self.reader.region(self.graph, self.scope, f"{self.origin}/body/", [*facts[:2], *given])

    def rooms(self) -> dict[int, tuple[SlotCapacity, int]] | None:
        """For each carried sequence how large its slots have to be, and how many more of them a trip takes. Found by
        reading the body until nothing grows any more but the number of elements."""
        self.optional = {number for number, state in enumerate(self.states) if isinstance(state, Maybe)}
        listed = [number for number, state in enumerate(self.states) if _is_list(state)]
        rooms = {number: room_of(_content(self.states[number])) for number in listed}
        for _ in range(_ATTEMPTS):
            states = [self.guess(number, rooms.get(number)) for number in range(len(self.states))]
            inner = self.body(states)
            results = self.reader.results(self.graph, inner)
            _take_apart(inner.graph)
            if results is None:
                return None
            growth, settled = {}, True
            for number, before in rooms.items():
                after = room_of(_content(results[1 + number]))
                count = before.count if before is not None else 0
                if after is None:
                    growth[number] = 0
                    continue
                joined = after if before is None else before.joined(after)
                growth[number] = max(after.count - (0 if before is None else max(count, 1)), 0)
                joined = replace(joined, count=count)
                settled &= joined == before
                rooms[number] = joined
            if settled:
                nothing = SlotCapacity(0, (), False)
                return {number: (room or nothing, growth[number]) for number, room in rooms.items()}
        raise Unsupported(
            "the elements of a carried sequence are larger after each trip", "bound their sizes, for example with Slice"
        )

    def guess(self, number: int, room: SlotCapacity | None) -> Fact | Structure[Fact]:
        state = self.states[number]
        if not _is_list(state):
            return _facts(state)
        dtype = _content(state).dtype
        made = Items[Fact](dtype, ()) if room is None else _slots_of(dtype, replace(room, count=max(room.count, 1)))
        return Maybe(_flag(), made) if number in self.optional else made

    def most(self, number: int, trips: int | None, room: SlotCapacity, growth: int) -> int:
        """The most elements a carried sequence can have."""
        name = self.node.output[number] if number < len(self.node.output) else ""
        known = self.scope.known_as(name) if name else ("NAME",)
        said = self.reader.limits.of(*known).most(0) if name else None
        if said is not None:
            self.reader.limits.used.update(known)
            return said
        trips = self.most_trips.get(0) if trips is None else trips
        if trips is None:
            raise Unsupported(
                "it carries a sequence that grows, and how many trips there are is known only at run time",
                f"say how many elements the sequence has at most: {bound_flag(known[0], (100,))}",
                (known[0], (100,)),
            )
        return room.count + max(trips, 0) * growth


def _take_apart(graph: Graph) -> None:
    """Nodes of a trial no longer count as readers of what is around them."""
    for node in reversed(list(graph.nodes)):
        graph.remove(node)


def _tensor(whole: ScopedValue) -> Value:
    if not isinstance(whole, Value):
        raise Invalid("what a loop collects is not a tensor")
    return whole


def _content(whole: ScopedValue) -> Sequence_:
    inner = whole.value if isinstance(whole, Maybe) else whole
    return sequence(inner)


def _is_list(whole: ScopedValue) -> bool:
    return isinstance(whole.value if isinstance(whole, Maybe) else whole, Items | Slots)


def _formed(writer: Writer, whole: ScopedValue, room: SlotCapacity) -> ScopedValue:
    slots = as_slots(writer, _content(whole), room)
    return Maybe(whole.present, slots) if isinstance(whole, Maybe) else slots


def _as_maybe(writer: Writer, whole: ScopedValue) -> ScopedValue:
    return whole if isinstance(whole, Maybe) else Maybe(writer.flag(True), whole)


def _facts(whole: ScopedValue) -> Fact | Structure[Fact]:
    def fact(value: Value) -> Fact:
        return Fact(value.type)

    return fact(whole) if isinstance(whole, Value) else whole.map(fact)


def _flag() -> Fact:
    return Fact(TensorType(bool_, ()))


def _slots_of(dtype: DType, room: SlotCapacity) -> Slots[Fact]:
    shapes = Fact(TensorType(i64, (room.count, len(room.shape)))) if room.ragged else None
    return Slots(dtype, room, Fact(TensorType(dtype, (room.count, room.size))), Fact(TensorType(i64, ())), shapes)
