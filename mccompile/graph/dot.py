"""Draws a graph for Graphviz: a box per node, an edge per value, regions as clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator

from .ir import Graph, Value, reads


def dot(graph: Graph) -> str:
    """The graph in Graphviz' language."""
    return "\n".join(["digraph {", '  node [shape=box, fontname="sans-serif"]', *_Drawing().graph(graph), "}"]) + "\n"


class _Drawing:
    def __init__(self) -> None:
        self.ids: dict[Value, str] = {}  # where the edge of a value starts
        self.count = 0

    def new(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def graph(self, graph: Graph) -> Iterator[str]:
        for value in graph.inputs:
            self.ids[value] = self.new()
            label = json.dumps(f"{value.name}: {value.type}")
            yield f"  {self.ids[value]} [label={label}, shape=ellipse]"
        for node in graph.nodes:
            me = self.new()
            yield f"  {me} [label={json.dumps(node.op.name)}, tooltip={json.dumps(', '.join(node.provenance))}]"
            for value in reads(node):
                if value in self.ids:
                    yield f"  {self.ids[value]} -> {me} [label={json.dumps(str(value.type))}]"
            for number, region in enumerate(node.regions):
                yield f"  subgraph cluster_{me}_{number} {{ label={json.dumps(region.name)}"
                yield from self.graph(region)
                yield "  }"
            self.ids.update((value, me) for value in node.present_outputs)
        for value in graph.outputs:
            me = self.new()
            yield f"  {me} [label={json.dumps(value.name)}, shape=ellipse]"
            if value in self.ids:
                yield f"  {self.ids[value]} -> {me} [label={json.dumps(str(value.type))}]"
