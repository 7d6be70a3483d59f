"""The nodes of a model's file as they stand there, for those who ask what became of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from onnx import GraphProto, ModelProto

from ..base.records import dataclass
from ..importers.api import AS_IT_IS, Reading
from .load import read_proto
from .ordering import node_name


@dataclass(frozen=True)
class Listed:
    position: str  # in the graph; of nodes in regions behind that of the node and the region's name: 4.then_branch.0
    name: str  # what provenance calls it: nameless ones go by their first result
    named: bool  # is that its own name?
    op: str
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]


def listed(path: Path, reading: Reading = AS_IT_IS) -> list[Listed]:
    return nodes_of(read_proto(path, reading))


def nodes_of(model: ModelProto) -> list[Listed]:
    return [*_of(model.graph, "")]


def _of(graph: GraphProto, prefix: str) -> Iterator[Listed]:
    for number, node in enumerate(graph.node):
        position, op = f"{prefix}{number}", f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        yield Listed(position, node_name(node), bool(node.name), op, tuple(node.output), tuple(node.input))
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _of(attribute.g, f"{position}.{attribute.name}.")
