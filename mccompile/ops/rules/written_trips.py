"""A region that runs a fixed number of times, written out trip by trip, so that gradients pass its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ...base.dims import Dim
from ...graph.ir import Graph, Node, Value, all_nodes
from .backward import Backward, Writer, static_shape

MOST = 20_000  # nodes: more make no program that anyone would build


def trips_of(back: Backward, region: Graph, trips: Dim | None) -> range:
    """Its trips; refused where only a run knows how many there are, or where they are too many."""
    if not isinstance(trips, int):
        back.refuse("how often it runs is known only at run time", "give it a trip count that is a constant")
    if not trips:
        back.refuse("it never runs")
    count = trips * len(list(all_nodes(region)))
    if count > MOST:
        back.refuse(f"its {trips} trips would be written out as {count:,} nodes, and {MOST:,} are the most")
    return range(trips)


def copied(writer: Writer, region: Graph, given: Sequence[Value]) -> list[Value]:
    """The results of a region that reads these values, from nodes of the graph around it."""
    made = dict(zip(region.inputs, given, strict=True))
    for node in region.nodes:
        writer.graph.add(_copy(writer, node, made))
    return [made.get(value, value) for value in region.outputs]


def _copy(writer: Writer, node: Node, made: dict[Value, Value]) -> Node:
    inputs = [None if value is None else made.get(value, value) for value in node.inputs]
    copy = Node(node.op, inputs, node.outputs, node.provenance, [_region(writer, r, made) for r in node.regions])
    facts = node.op.infer(copy.site())
    copy.outputs = [
        None if value is None else Value(writer.name(value.name), fact)
        for value, fact in zip(node.outputs, facts, strict=False)
    ]
    made.update((old, new) for old, new in zip(node.outputs, copy.outputs, strict=False) if old and new)
    return copy


def _region(writer: Writer, region: Graph, around: dict[Value, Value]) -> Graph:
    inputs = [Value(writer.name(value.name), value.fact) for value in region.inputs]
    made = {**around, **dict(zip(region.inputs, inputs, strict=True))}
    copy = Graph(region.name, inputs)
    for node in region.nodes:
        copy.add(_copy(writer, node, made))
    copy.outputs = [made.get(value, value) for value in region.outputs]
    return copy


def stacked(writer: Writer, parts: Sequence[Value], axis: int) -> Value:
    """Along a new axis."""
    shape = list(static_shape(parts[0]))
    shape.insert(axis, 1)
    return writer.op("Concat", *(writer.reshape(part, shape) for part in parts), axis=axis)


def slices(writer: Writer, x: Value, axis: int) -> list[Value]:
    """Along an axis, without it."""
    shape = static_shape(x)
    rest = (*shape[:axis], *shape[axis + 1 :])
    if shape[axis] == 1:
        return [writer.reshape(x, rest)]
    split = writer.resolve("", "Split")(axis=axis)
    parts = writer.node(split, [x, writer.ints([1] * shape[axis])], shape[axis])
    return [writer.reshape(part, rest) for part in parts]
