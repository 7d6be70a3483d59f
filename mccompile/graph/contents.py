"""What a graph consists of, to tell whether a pass has changed it."""

from __future__ import annotations

from .ir import Graph, Value, graphs


def contents(whole: Graph) -> list[object]:
    """All that `verify` looks at, in order: a graph whose contents are the same objects as before is as right as
    before. To be compared by identity, and as long as the list keeps them alive."""
    found: list[object] = []
    values: dict[Value | None, None] = {}
    for graph in graphs(whole):
        nodes = graph.nodes
        found += (graph, *graph.inputs, None, *nodes, None, *graph.outputs)
        values.update(dict.fromkeys((*graph.inputs, *graph.outputs)))
        for node in nodes:
            found += (node.op, node.provenance, *node.inputs, None, *node.outputs)
            values.update(dict.fromkeys(node.inputs))
            values.update(dict.fromkeys(node.outputs))
    values.pop(None, None)
    for value in values:
        if value is not None:
            found += (value, value.name, value.fact, value.constant, value.producer, *value.uses)
    return found
