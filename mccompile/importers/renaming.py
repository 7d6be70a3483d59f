"""Tensors and nodes of a graph under names of their own, in bodies too, which read what is around them."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import GraphProto


def name_apart(graph: GraphProto, prefix: str, kept: Mapping[str, str]) -> None:
    """Every name gets the prefix, but those that `kept` says something else for."""
    made = [tensor.name for tensor in graph.initializer]
    made += [tensor.values.name for tensor in graph.sparse_initializer]
    made += [entry.name for entry in graph.input]
    made += [name for node in graph.node for name in node.output if name]
    names = {**{name: f"{prefix}{name}" for name in made}, **kept}

    def now(name: str) -> str:
        return names.get(name, name)

    for tensor in graph.initializer:
        tensor.name = now(tensor.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = now(sparse.values.name)
    for entry in (*graph.input, *graph.output, *graph.value_info):
        entry.name = now(entry.name)
    for node in graph.node:
        node.name = f"{prefix}{node.name}" if node.name else ""
        node.input[:], node.output[:] = map(now, node.input), map(now, node.output)
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                name_apart(body, prefix, names)
