"""How many nodes inlining a model's functions makes, and how deep they go, known before any is inlined.

Invariant: linear in the size of the file, without recursion, whatever the functions say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from onnx import FunctionProto, GraphProto, NodeProto

from ..base.budgets import budgets
from ..base.records import dataclass
from ..graph.ir import Invalid, Refused, Unsupported
from .ordering import node_name
from .scope import FunctionKey


@dataclass(frozen=True)
class Extent:
    nodes: int  # after inlining
    depth: int  # of functions and bodies


Call = tuple[NodeProto, int]  # a node, and how many bodies are around it


def over_budget(graph: GraphProto, functions: Mapping[FunctionKey, FunctionProto]) -> tuple[NodeProto, Refused] | None:
    """The first node of a graph that becomes too many, and why; None where all is within the budget."""
    if not functions:
        return None
    try:
        extents = _extents(graph, functions)
    except _Recursive as recursive:
        circle = [key[1] for key in recursive.circle]
        return recursive.node, Invalid(f"function {circle[0]} calls itself: {' -> '.join([*circle, circle[0]])}")
    total, most = 0, budgets()
    for node, around in _calls(graph.node):
        extent = extents.get(key_of(node))
        if extent is None:
            continue
        total += extent.nodes
        if extent.depth + around > most.depth:
            why = f"functions and bodies are {extent.depth + around} deep there, {most.depth} are the most"
            return node, Unsupported(why, "export the model with its inner functions inlined")
        if total > most.nodes:
            why = f"functions that call functions become {total} nodes up to there, {most.nodes} are the most"
            return node, Unsupported(why, "export the model with fewer calls in functions")
    return None


def key_of(node: NodeProto) -> FunctionKey:
    return ("" if node.domain == "ai.onnx" else node.domain, node.op_type, node.overload)


class _Recursive(Exception):
    def __init__(self, node: NodeProto, circle: Sequence[FunctionKey]) -> None:
        super().__init__(node_name(node))
        self.node, self.circle = node, circle


def _extents(graph: GraphProto, functions: Mapping[FunctionKey, FunctionProto]) -> dict[FunctionKey, Extent]:
    """Of every function that is called, inner ones first."""
    known: dict[FunctionKey, Extent] = {}
    for start, _ in _calls(graph.node):
        path: dict[FunctionKey, tuple[list[Call], Iterator[Call]]] = {}
        waiting = [start]
        while waiting:
            key = key_of(waiting[-1])
            if key not in functions or key in known:
                waiting.pop()
                continue
            if key not in path:
                calls = list(_calls(functions[key].node))
                path[key] = calls, iter(calls)
            following = next(path[key][1], None)
            if following is not None:
                if key_of(following[0]) in path:
                    keys = list(path)
                    raise _Recursive(start, keys[keys.index(key_of(following[0])) :])
                waiting.append(following[0])
                continue
            known[key] = _extent(path.pop(key)[0], known)
            waiting.pop()
    return known


def _extent(calls: Sequence[Call], known: Mapping[FunctionKey, Extent]) -> Extent:
    nodes, depth = 0, 1
    for node, around in calls:
        inner = known.get(key_of(node))
        nodes += 1 + (inner.nodes if inner else 0)
        depth = max(depth, 1 + around + (inner.depth if inner else 0))
    return Extent(nodes, depth)


def _calls(nodes: Sequence[NodeProto]) -> Iterator[Call]:
    """All nodes, those in bodies of others included."""
    waiting = [(node, 0) for node in reversed(nodes)]
    while waiting:
        node, around = waiting.pop()
        yield node, around
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                waiting += [(inner, around + 1) for inner in reversed(graph.node)]
