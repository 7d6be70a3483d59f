"""Loops that carry something which their first trip changes to other sizes, as a sum that starts with one number does:
written as that trip, and a loop of those behind it.

Invariant: nothing is taken out of a loop that may end before its first trip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from onnx import GraphProto, NodeProto, helper

from ..graph.ir import Value
from .contradictions import said_types
from .declarations import declared_ranks, declared_shapes
from .evaluate import constant_of
from .graphs import GraphReader
from .scope import Found, Missing, Scope

_JOINED = 13  # the opset of what joins results


def runs(trips: Value | None, condition: Value | None) -> bool:
    """Is there a first trip for certain?"""
    count, start = (None if value is None else constant_of(value, {}) for value in (trips, condition))
    return (trips is None or (count is not None and int(count.array.reshape(-1)[0]) > 0)) and (
        condition is None or (start is not None and bool(start.array.reshape(-1)[0]))
    )


def read(
    reader: GraphReader, node: NodeProto, body: GraphProto, operands: Sequence[Value | None], scope: Scope
) -> Sequence[Found]:
    """The results of a loop whose first trip is taken out."""
    origin = scope.origin(node)
    ranks, carried = declared_ranks(body), len(body.input) - 2

    def constant(array: np.ndarray) -> Value:
        return reader.constant(array, scope, origin)

    def inside(name: str) -> Scope:
        return replace(scope, outer=scope, values={}, prefix=f"{origin}/{name}/", shapes={}, said={})

    first = replace(inside("first"), shapes=declared_shapes(body, {}), said=said_types(body))
    starts = (constant(np.zeros((1,) * (ranks[0] or 0), np.int64)), constant(np.ones((1,) * (ranks[1] or 0), np.bool_)))
    given = (*starts, *(value or Missing.ABSENT for value in operands[2:]))
    first.values.update(zip((entry.name for entry in body.input), given, strict=True))
    reader.constants(body, first)
    reader.nodes(body.node, first)
    made = [first.find(entry.name) or Missing.BROKEN for entry in body.output]
    if not all(isinstance(value, Value) for value in made):
        return [Missing.BROKEN] * len(node.output)

    trips = None if operands[0] is None else constant_of(operands[0], {})
    behind, left = inside("behind"), None if trips is None else int(trips.array.reshape(-1)[0]) - 1
    behind.values["more"] = made[0]
    behind.values |= {f"state {number}": value for number, value in enumerate(made[1 : 1 + carried])}
    ends = [f"end {number}" for number in range(len(made) - 1)]
    if left is not None:
        behind.values["left"] = constant(np.array(left, np.int64))
    states = [f"state {number}" for number in range(carried)]
    if left == 0:
        rest, tails = list[NodeProto](), [*states, *([""] * (len(ends) - carried))]
    else:
        counts = "" if left is None else "left"
        rest, tails = [helper.make_node("Loop", [counts, "more", *states], ends, node.name, body=_later(body))], ends
    reader.nodes(rest, behind)

    joined = replace(inside("joined"), outer=behind, opsets={**scope.opsets, "": _JOINED})
    joined.values["axis"] = constant(np.zeros(1, np.int64))
    results: list[Found] = []
    for number, name in enumerate(node.output):
        result = behind.find(tails[number]) if tails[number] else None
        if number >= carried and name:
            joined.values[f"one {number}"] = made[1 + number]
            nodes = [helper.make_node("Unsqueeze", [f"one {number}", "axis"], [f"row {number}"])]
            if tails[number]:
                nodes.append(helper.make_node("Concat", [f"row {number}", tails[number]], [f"all {number}"], axis=0))
            reader.nodes(nodes, joined)
            result = joined.find(nodes[-1].output[0])
        results.append(result or Missing.BROKEN)
    return results


def _later(body: GraphProto) -> GraphProto:
    """The body, for a loop that begins to count a trip later."""
    copy = GraphProto()
    copy.CopyFrom(body)
    name = copy.input[0].name
    copy.input[0].name = f"{name}/behind"
    one = helper.make_tensor(f"{name}/one", 7, [], [1])
    added = (
        helper.make_node("Constant", [], [f"{name}/one"], value=one),
        helper.make_node("Add", [f"{name}/behind", f"{name}/one"], [name]),
    )
    nodes = [*added, *(NodeProto.FromString(node.SerializeToString()) for node in body.node)]
    del copy.node[:]
    copy.node.extend(nodes)
    return copy
