"""The units of a graph: nodes that an accelerator computes all together or not at all.

Invariant: every node but DequantizeLinear is in exactly one unit; units come in an order in which they can run.
"""

from __future__ import annotations

from ...accelerators.api import Unit
from ...graph.ir import Graph, Node
from ...ops.quantize import DequantizeLinear, QuantizeLinear


def units_of(graph: Graph) -> list[Unit]:
    within: dict[Node, Unit] = {}
    for node in graph.nodes:
        unit = _between_integers(graph, node) if isinstance(node.op, QuantizeLinear) else None
        if unit is not None:
            within |= {inner: unit for inner in unit.nodes if not isinstance(inner.op, DequantizeLinear)}
    found = list[Unit]()
    for node in graph.nodes:
        unit = within.get(node)
        if unit is not None:
            if node is unit.nodes[-1]:
                found.append(unit)
        elif not isinstance(node.op, DequantizeLinear) or _is_read_elsewhere(graph, node, within):
            found.append(Unit((node,)))
    return found


def _between_integers(graph: Graph, last: Node) -> Unit | None:
    """The float nodes between a QuantizeLinear and the DequantizeLinear in front of it, where nobody else reads what
    they make."""
    inside, waiting = {last}, [last.inputs[0]]
    while waiting:
        value = waiting.pop()
        if value is None or value.constant is not None:
            continue
        node = value.producer
        if node is None or node.regions:
            return None
        if node in inside or isinstance(node.op, DequantizeLinear):
            inside.add(node)
            continue
        alone = all(reader in inside for made in node.present_outputs for reader, _ in made.uses)
        if not alone or any(map(graph.is_output, node.present_outputs)) or isinstance(node.op, QuantizeLinear):
            return None
        inside.add(node)
        waiting += node.inputs
    return Unit(tuple(node for node in graph.nodes if node in inside)) if len(inside) > 1 else None


def _is_read_elsewhere(graph: Graph, node: Node, within: dict[Node, Unit]) -> bool:
    """Does a unit of its own read it, or the user?"""
    return graph.is_output(node.output) or any(reader not in within for reader, _ in node.output.uses)
