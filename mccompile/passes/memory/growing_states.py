"""States that grow, such as the caches of decoders: `present = Concat(past, new)`, and `--state present=past`.

Such a state lies in a buffer with room for the most. Its length is a state too, which every run measures first and
leaves longer by what it has added; so what a run adds is written behind what is there, and nothing is moved. Inputs
that are as long as that, such as masks, have room for the most as well.

Invariant: behind the length of a buffer nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...base.dims import Dim, Symbol, Symbolic, symbols, upper
from ...base.dtypes import i64
from ...base.errors import Problem, WrongUse, raise_all
from ...base.names import Names
from ...base.records import dataclass
from ...base.tensor import TensorType
from ...graph.ir import Fact, Graph, Node, Value
from ...ops.concat import Concat
from ...ops.growing import PutBehind, UsedPart
from ...ops.identity import Identity
from ...ops.shape import Shape

SIZE_PREFIX = "n_"  # of the names of sizes


@dataclass(frozen=True)
class Growth:
    """Along which axis a state grows, how long it is before a run, and how much a run adds."""

    axis: int
    length: Symbol
    new: Dim


def growth(taken: TensorType, made: TensorType) -> Growth | None:
    """How a state grows, if it does: one size, free by itself, becomes larger."""
    if taken.dtype is not made.dtype or taken.rank != made.rank:
        return None
    pairs = enumerate(zip(taken.shape, made.shape, strict=True))
    changed = [(axis, before, after) for axis, (before, after) in pairs if before != after]
    if len(changed) != 1:
        return None
    axis, before, after = changed[0]
    match before:
        case Symbolic(terms=(((Symbol() as length,), 1),), constant=0):
            new = after - before
            return None if length in symbols(new) else Growth(axis, length, new)
    return None


USUAL = 255  # elements that a state may have where the model's file says 0


def freed(name: str, taken: TensorType, made: TensorType) -> str:
    """What lets a state grow whose length is fixed; empty where something else is wrong."""
    if taken.dtype is not made.dtype or not taken.is_static or not made.is_static or taken.rank != made.rank:
        return ""
    pairs = list(zip(taken.static_shape, made.static_shape, strict=True))
    changed = [axis for axis, (before, after) in enumerate(pairs) if before != after]
    if len(changed) != 1 or pairs[changed[0]][0] > pairs[changed[0]][1]:
        return ""
    (axis,) = changed
    shape = ",".join("past" if place == axis else str(size) for place, size in enumerate(taken.shape))
    return f"--shape {name}={shape} --dim past=0..{taken.shape[axis] or USUAL}, and its length for all that is as long"


def refusals(graph: Graph, grown: Mapping[str, Growth]) -> Iterable[Problem]:
    """Why states, by the names of their inputs, cannot grow as they are."""
    inputs, outputs = ({v.name: v for v in values} for values in (graph.inputs, graph.outputs))
    steps: dict[Symbol, tuple[str, Dim]] = {}
    for before, found in grown.items():
        after, size = graph.states[before], found.length.name.removeprefix(SIZE_PREFIX)
        where = f"--state {after}={before}"
        what = f"state {before!r} cannot grow"
        first, new = steps.setdefault(found.length, (before, found.new))
        if found.length.low != 0:
            why = f"it begins without elements, and {size} is {found.length.low} at least"
            yield Problem(what, where, why, f"--dim {size}=0..{found.length.high}")
        if new != found.new:
            why = f"a run adds {found.new} elements to it and {new} to {first!r}, and both are as long as {size}"
            yield Problem(what, where, why, f"give them lengths of different names: --shape {before}=...")
        if joined(outputs[after], inputs[before], found.axis) is None:
            why = f"{after!r} is not a Concat of {before!r} and what is new, in this order, along axis {found.axis}"
            fix = f"leave out --state {after}={before}, and hand it over in your program"
            yield Problem(what, where, why, fix)
    lengths = {found.length for found in grown.values()}
    for value in graph.inputs:
        if graph.is_output(value) and lengths & {s for dim in value.type.shape for s in symbols(dim)}:
            why = f"it is {value.type}, and the input is padded to the largest size"
            fix = f"take {value.name!r} out of the model's outputs"
            yield Problem(
                f"output {value.name!r} cannot pass on an input that is as long as a growing state", "", why, fix
            )
    for before in graph.states:
        if before not in grown and lengths & {s for dim in inputs[before].type.shape for s in symbols(dim)}:
            why = f"it is {inputs[before].type}, whose size another state changes from run to run"
            where, fix = f"--state {graph.states[before]}={before}", "leave it out, and hand it over in your program"
            yield Problem(f"state {before!r} cannot be kept", where, why, fix)


def _maker(value: Value) -> Node | None:
    """The node that makes a value or what it is another name of."""
    node = value.producer
    while node is not None and isinstance(node.op, Identity) and node.inputs[0] is not None:
        node = node.inputs[0].producer
    return node


def joined(made: Value, taken: Value, axis: int) -> Node | None:
    """The node that joins a state and what is new."""
    node = _maker(made)
    if node is None or not isinstance(node.op, Concat) or node.inputs[0] is not taken:
        return None
    return node if node.op.axis % taken.type.rank == axis and taken not in node.inputs[1:] else None


def grow_states(graph: Graph) -> None:
    """Has the states that grow lie in buffers with room for the most."""
    inputs, outputs = ({v.name: v for v in values} for values in (graph.inputs, graph.outputs))
    grown: dict[str, Growth] = {}
    for before, after in graph.states.items():
        found = growth(inputs[before].type, outputs[after].type)
        if found is not None:
            grown[before] = found
    if not grown:
        return
    raise_all(WrongUse, refusals(graph, grown))
    names = Names()
    for known in graph.values():
        names.take(known.name)
    lengths = {found.length: found for found in grown.values()}
    ends: dict[Symbol, Value] = {}
    for value in list(graph.inputs):
        if any(s in lengths for dim in value.type.shape for s in symbols(dim)):
            buffer = _with_room(graph, value, lengths, names)
            if value.name in grown:
                found = grown[value.name]
                ends[found.length] = _put_behind(graph, outputs[graph.states[value.name]], value, buffer, found, names)
            buffer.name, value.name = value.name, buffer.name
    for symbol, end in ends.items():
        name = names.take(symbol.name.removeprefix(SIZE_PREFIX))
        length = Value(name, Fact(TensorType(i64, (1,))))
        graph.inputs.append(length)
        axis = lengths[symbol].axis
        assert end.producer is not None
        provenance = end.producer.provenance
        graph.outputs += graph.compute(Shape(axis, axis + 1), [end], [names.take(f"{name}/next")], provenance)
        graph.states[name] = graph.outputs[-1].name
        graph.lengths[name] = symbol
    graph.sort()


def _size(length: Symbol) -> Symbolic:
    return Symbolic((((length,), 1),))


def _with_room(graph: Graph, value: Value, lengths: Mapping[Symbol, Growth], names: Names) -> Value:
    """An input with room for the most in place of one that varies; its readers read the part that is used."""
    shape = value.type.shape
    free = {axis: dim for axis, dim in enumerate(shape) if any(s in lengths for s in symbols(dim))}
    room = [upper(dim) if axis in free else dim for axis, dim in enumerate(shape)]
    for axis, dim in free.items():
        for found in lengths.values():
            if dim == _size(found.length):
                room[axis] = upper(dim + found.new)
    buffer = part = Value(names.take(f"{value.name}/used"), Fact(TensorType(value.type.dtype, tuple(room))))
    graph.inputs[graph.inputs.index(value)] = buffer
    *others, last = free.items()
    for axis, dim in others:
        part = graph.compute(UsedPart(axis, dim), [part], [names.take(f"{value.name}/{axis}")], (value.name,))[0]
    axis, dim = last
    graph.add(Node(UsedPart(axis, dim), [part], [value], (value.name,)))
    return buffer


def _put_behind(graph: Graph, made: Value, taken: Value, buffer: Value, found: Growth, names: Names) -> Value:
    """Writes what is new into the buffer, which becomes the output. Gives what is used then."""
    node = joined(made, taken, found.axis)
    assert node is not None
    used = _size(found.length)
    parts = [buffer, *node.inputs[1:]]
    former, provenance = node.output, node.provenance
    whole = graph.compute(PutBehind(found.axis, used), parts, [names.take(f"{taken.name}/grown")], provenance)[0]
    end = graph.compute(
        UsedPart(found.axis, used + found.new), [whole], [names.take(f"{former.name}/used")], provenance
    )[0]
    place = next(number for number, value in enumerate(graph.outputs) if value is made)
    graph.outputs[place] = whole
    graph.replace(former, end)
    whole.name, made.name = made.name, whole.name
    return end
