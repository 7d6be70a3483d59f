"""eliminate_dead: removes nodes whose results nobody reads, and optional results that nobody reads."""

from __future__ import annotations

from ...frontend.signature import optional_results
from ...graph.ir import Graph, Node
from ..api import Context


def eliminate_dead(graph: Graph, context: Context) -> None:
    drop_dead(graph)


def drop_dead(graph: Graph) -> None:
    """The same for those who run no passes."""
    for node in reversed(list(graph.nodes)):
        if not any(value.uses or graph.is_output(value) for value in node.present_outputs):
            graph.remove(node)
            continue
        for region in node.regions:
            drop_dead(region)
        _drop_results(graph, node)


def _drop_results(graph: Graph, node: Node) -> None:
    """Kernels do not compute a result that is absent."""
    if len(node.outputs) == 1:
        return
    optional = optional_results(node.op.domain, node.op.name)
    for position, value in enumerate(node.outputs):
        if value is not None and position in optional and not value.uses and not graph.is_output(value):
            node.outputs[position] = None
