"""Loops that carry a tensor which each trip makes longer, as decoders are exported: written as loops that carry a
buffer of the largest size and how much of it is used.

Invariant: a trip that would need more room ends the run with a status.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from onnx import GraphProto, NodeProto, ValueInfoProto, helper, numpy_helper

from ..base.records import dataclass
from ..graph.ir import Value
from ..graph.refusals import unbounded
from ..ops.api import OnnxNode
from ..ops.rules.trips import Grows
from .graphs import GraphReader
from .ordering import node_name
from .scope import Found, Missing, Scope

OWN = "mccompile"  # the domain of SlotPosition
FIRST_OPSET = 11  # where Pad and Slice take operands


@dataclass(frozen=True)
class GrowthAxis:
    """Where a carried tensor grows, and by how much in each trip."""

    number: int
    axis: int
    rank: int
    by: int


def room(node: NodeProto, grows: Grows, loop: OnnxNode, scope: Scope) -> int:
    """The size that the carried tensor can have at most."""
    trips = loop.inputs[0].fact.value if loop.inputs and loop.inputs[0] is not None else None
    known = trips.item() if trips is not None and trips.size == 1 else None
    times = known if isinstance(known, int) else loop.most.get(0)
    limit = loop.limits[grows.number] if grows.number < len(loop.limits) else None
    said = None if limit is None else limit.most(grows.axis)
    found = [said] if said is not None else []
    found += [grows.most + times * grows.by] if times is not None else []
    if found:
        return min(found)
    if limit is not None and limit.otherwise is not None:
        return limit.otherwise
    name = scope.known_as((node.input[0] if node.input else "") or node.output[grows.number])[0]
    what = f"carried value {grows.number} grows by {grows.by} in each trip"
    raise unbounded(what, name, "nothing says how often the loop runs")


def read(reader: GraphReader, node: NodeProto, grows: Grows, loop: OnnxNode, scope: Scope) -> Sequence[Found]:
    """The results of a loop that carries something that grows."""
    nodes = written_out(
        node, GrowthAxis(grows.number, grows.axis, grows.rank, grows.by), room(node, grows, loop, scope)
    )
    reader.limits.used.update(scope.known_as(node.output[grows.number]))
    opsets, prefix = {**scope.opsets, OWN: 1}, f"{scope.origin(node)}/"
    inner = replace(scope, outer=scope, values={}, opsets=opsets, prefix=prefix, shapes={}, said={})
    reader.nodes(nodes, inner)
    results = [inner.find(name) or Missing.BROKEN for name in node.output]
    for name, value in zip(node.output, results, strict=True):
        if isinstance(value, Value) and name:
            value.name = reader.unique(name, scope)
    return results


class Writer:
    """Nodes in the making; names begin with that of the loop."""

    def __init__(self, prefix: str) -> None:
        self.prefix, self.nodes = prefix, list[NodeProto]()

    def op(self, name: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        made = f"{self.prefix}/{len(self.nodes)}"
        self.nodes.append(helper.make_node(name, inputs, [made], made, domain=domain, **attributes))
        return made

    def ints(self, *values: int) -> str:
        return self.op("Constant", value=numpy_helper.from_array(np.array(values, np.int64)))

    def length(self, x: str, axis: int) -> str:
        return self.op("Gather", self.op("Shape", x), self.ints(axis), axis=0)

    def scalar(self, x: str) -> str:
        return self.op("Reshape", x, self.op("Constant", value=numpy_helper.from_array(np.zeros(0, np.int64))))

    def first(self, x: str, end: str, axis: int) -> str:
        return self.op("Slice", x, self.ints(0), end, self.ints(axis))

    def padded(self, x: str, more: str, axis: int, rank: int) -> str:
        before = [self.ints(*[0] * (rank + axis)), more]
        behind = [self.ints(*[0] * (rank - axis - 1))] if axis + 1 < rank else []
        return self.op("Pad", x, self.op("Concat", *before, *behind, axis=0))


def written_out(node: NodeProto, grows: GrowthAxis, most: int, alike: Sequence[GrowthAxis] = ()) -> list[NodeProto]:
    """Nodes in place of a loop. `alike`: what else is always as long, and grows as much."""
    prefix, states = f"{node_name(node)}/carried {grows.number}", len(node.input) - 2
    around, results = Writer(prefix), [*node.output, *[""] * (states - len(node.output))]
    begin = around.scalar(around.length(node.input[2 + grows.number], grows.axis))
    loop = NodeProto()
    loop.CopyFrom(node)
    graph = next(attribute.g for attribute in loop.attribute if attribute.name == "body")
    _change(graph, prefix, grows, most, states, alike)
    whole, length = list(results), f"{prefix}/length"
    for each in (grows, *alike):
        operand = node.input[2 + each.number]
        more = around.op("Sub", around.ints(most), around.length(operand, each.axis))
        loop.input[2 + each.number] = around.padded(operand, more, each.axis, each.rank)
        whole[each.number] = f"{prefix}/whole {each.number}"
    loop.input.insert(2 + states, begin)
    del loop.output[:]
    loop.output.extend(whole)
    loop.output.insert(states, length)
    around.nodes.append(loop)
    for each in (grows, *alike):
        if results[each.number]:
            around.first(whole[each.number], around.op("Reshape", length, around.ints(1)), each.axis)
            around.nodes[-1].output[0] = results[each.number]
    return around.nodes


def _change(
    body: GraphProto, prefix: str, grows: GrowthAxis, most: int, states: int, alike: Sequence[GrowthAxis]
) -> None:
    """The body takes the buffers and how much of them is used, and gives both."""
    before, behind = Writer(f"{prefix}/taken"), Writer(f"{prefix}/given")
    least, length = most - grows.by, f"{prefix}/used"
    first, result = body.input[2 + grows.number].name, body.output[1 + grows.number].name
    limit = before.op("Constant", value=numpy_helper.from_array(np.array(least, np.int64)))
    used = before.op("Reshape", before.op("SlotPosition", length, limit, domain=OWN, more=1), before.ints(1))
    more = behind.op("Sub", behind.ints(least), behind.length(first, grows.axis))
    grown = behind.scalar(behind.length(result, grows.axis))
    for each in (grows, *alike):
        taken, given = body.input[2 + each.number], body.output[1 + each.number]
        buffer = f"{prefix}/buffer {each.number}"
        before.first(before.first(buffer, before.ints(least), each.axis), used, each.axis)
        before.nodes[-1].output[0] = taken.name
        padded = behind.padded(given.name, more, each.axis, each.rank)
        used = used if each is not grows else before.length(first, grows.axis)  # shows that they are as long
        taken.CopyFrom(ValueInfoProto(name=buffer))
        given.CopyFrom(ValueInfoProto(name=padded))
    nodes = [*before.nodes, *body.node, *behind.nodes]
    inside = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del body.node[:]
    body.node.extend(inside)
    body.input.insert(2 + states, ValueInfoProto(name=length))
    body.output.insert(1 + states, ValueInfoProto(name=grown))
