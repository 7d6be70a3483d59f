"""Nodes of a file in an order in which each reads only what is there: most files have it already, some do not.

A file may break this in two ways: a name that nothing makes, and nodes that wait for each other in a circle.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from onnx import GraphProto, ModelProto, NodeProto


def node_name(node: NodeProto) -> str:
    """What a node is called in messages and comments; nameless ones go by their first result."""
    return node.name or next(filter(None, node.output), node.op_type)


def names_read(node: NodeProto) -> Iterator[str]:
    """Names a node reads, those that its regions read from around them included."""
    yield from filter(None, node.input)
    for attribute in node.attribute:
        for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
            yield from names_captured(graph)


def names_captured(graph: GraphProto) -> Iterator[str]:
    made = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
    made |= {tensor.values.name for tensor in graph.sparse_initializer}
    made |= {name for node in graph.node for name in node.output}
    for node in graph.node:
        yield from (name for name in names_read(node) if name not in made)
    yield from (value.name for value in graph.output if value.name not in made)


class Circle(Exception):
    """Nodes that wait for each other."""

    def __init__(self, nodes: Sequence[NodeProto]) -> None:
        super().__init__()
        self.nodes = nodes


def in_order(
    nodes: Sequence[NodeProto], known: Callable[[str], bool], missing: Callable[[NodeProto, str], None]
) -> Sequence[NodeProto]:
    """The nodes, sorted only where they must be.

    `known` says what is there before the first of them; names that nothing makes go to `missing`.
    """
    maker = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    waits_for: list[list[int]] = []
    sorted_already = True
    for number, node in enumerate(nodes):
        before = []
        for name in dict.fromkeys(names_read(node)):
            made_by = maker.get(name)
            if made_by is not None and not (made_by >= number and known(name)):
                before.append(made_by)
                sorted_already &= made_by < number
            elif not known(name):
                missing(node, name)
        waits_for.append(before)
    return nodes if sorted_already else [nodes[number] for number in _sorted(nodes, waits_for)]


def sorted_model(model: ModelProto) -> ModelProto:
    """A copy with the nodes of its graph in order; the model itself where they are."""
    made = {name for node in model.graph.node for name in node.output}
    nodes = in_order(model.graph.node, lambda name: name not in made, lambda node, name: None)
    if nodes is model.graph.node:
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    del copy.graph.node[:]
    copy.graph.node.extend(nodes)
    return copy


def _sorted(nodes: Sequence[NodeProto], waits_for: list[list[int]]) -> Iterator[int]:
    done: set[int] = set()
    for start in range(len(nodes)):
        path: dict[int, Iterator[int]] = {} if start in done else {start: iter(waits_for[start])}
        while path:
            current = next(reversed(path))
            following = next((n for n in path[current] if n not in done), None)
            if following is None:
                del path[current]
                done.add(current)
                yield current
            elif following in path:
                numbers = list(path)
                # from a node to what it waits for; turned round, each feeds the next
                raise Circle([nodes[n] for n in reversed(numbers[numbers.index(following) :])])
            else:
                path[following] = iter(waits_for[following])


def texts(nodes: Sequence[NodeProto], graph: GraphProto | None = None) -> Iterator[object]:
    """Every name in the nodes, their regions, and the graph around them. Protobuf gives bytes for what is not UTF-8."""
    for node in nodes:
        yield from (node.name, node.op_type, node.domain, node.overload, *node.input, *node.output)
        for attribute in node.attribute:
            yield from (attribute.name, attribute.ref_attr_name)
            for inner in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from texts(inner.node, inner)
    if graph is not None:
        yield graph.name
        for value in (*graph.input, *graph.output):
            yield value.name
            yield from (dim.dim_param for dim in value.type.tensor_type.shape.dim)
        for tensor in (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer)):
            yield tensor.name
            yield from (text for entry in tensor.external_data for text in (entry.key, entry.value))
