"""share_common: the same computation of the same operands is done once, and equal constants are kept once.

That two constants are equal is a fact about weights, so it is recorded.
"""

from __future__ import annotations

from ...base.text import write_fields
from ...graph.ir import Graph, Node, Value
from ...graph.pattern import graphs
from ...ops.api import Operator
from ..api import Context


def share_common(graph: Graph, context: Context) -> None:
    _share_constants(graph)
    for part in graphs(graph):
        _share_nodes(part)


def _share_constants(graph: Graph) -> None:
    constants = graph.constants()  # those that only regions read included
    by_type: dict[str, list[Value]] = {}
    for value in constants:
        by_type.setdefault(str(value.type), []).append(value)
    for alike in by_type.values():
        if len(alike) == 1:
            continue  # never read for this
        first: dict[str, Value] = {}
        for value in alike:
            assert value.constant is not None
            kept = first.setdefault(value.constant.digest, value)
            if kept is not value and value.constant is not kept.constant:
                graph.facts_used[f"{value.name} equals {kept.name}"] = None
            if kept is not value and not graph.is_output(value):
                graph.replace(value, kept)


def _share_nodes(graph: Graph) -> None:
    seen: dict[tuple[object, ...], Node] = {}
    for node in list(graph.nodes):
        op = node.op
        if node.regions or not isinstance(op, Operator) or op.random:
            continue
        present = tuple(value is not None for value in node.outputs)
        key = (op.qualified_name, write_fields(op), tuple(map(id, node.inputs)), present)
        kept = seen.setdefault(key, node)
        if kept is node or any(graph.is_output(value) for value in node.present_outputs):
            continue
        for value, same in zip(node.outputs, kept.outputs, strict=True):
            if value is not None and same is not None:
                graph.replace(value, same)
        kept.provenance = tuple(dict.fromkeys((*kept.provenance, *node.provenance)))
        graph.remove(node)
