"""Turns a region into a separate graph, and into one node of the original graph."""

from __future__ import annotations

from ...accelerators.api import Built, Order, Region
from ...base.constant import Constant
from ...base.names import new_name
from ...base.tensor import TensorType
from ...graph.ir import Fact, Graph, Node, Value
from ...ops.external import External
from ...ops.transpose import Transpose
from ..api import Accelerated


def graph_of(region: Region, built: Built) -> Graph:
    """The region alone, with inputs and results as its function has them, called in0, in1 .. and out0, out1 .."""
    graph = Graph(region.name)
    copies: dict[Value, Value] = {}
    for place, value in enumerate(region.inputs):
        order = built.orders.get(value)
        given = Value(f"in{place}", Fact(_ordered(value, order)))
        graph.inputs.append(given)
        if order is not None:
            given = graph.compute(Transpose(perm=_back(order)), [given], [f"in{place}/turned"], region.provenance)[0]
        copies[value] = given
    for node in region.nodes:
        inputs = [None if value is None else _copy_of(value, copies) for value in node.inputs]
        for value in node.present_outputs:
            copies[value] = Value(f"v{len(copies)}", value.fact)
        outputs = [None if value is None else copies[value] for value in node.outputs]
        graph.add(Node(node.op, inputs, outputs, node.provenance))
    graph.sort()
    for place, value in enumerate(region.results):
        made, order = copies[value], built.orders.get(value)
        if order is not None:
            made = graph.compute(Transpose(perm=order), [made], [f"out{place}/turned"], region.provenance)[0]
        made.name = f"out{place}"
        graph.outputs.append(made)
    return graph


def replace_region(graph: Graph, region: Region, built: Built, asked: Accelerated) -> None:
    """One node in place of the region's. `graph.sort` is the caller's."""
    taken = {value.name for value in graph.values()}
    op = External(
        region.name,
        tuple(value.type.dtype for value in region.inputs) + tuple(Constant.of(a).type.dtype for a in built.constants),
        tuple((value.type.dtype, _ordered(value, built.orders.get(value)).shape) for value in region.results),
        include=f"{asked.folder.name}/{region.name}.h",
        workspace=built.workspace,
        align=built.align,
        accelerator=asked.accelerator.name,
        cycles=built.cycles,
    )
    operands = [_turned(graph, value, built.orders.get(value), region, taken) for value in region.inputs]
    for place, array in enumerate(built.constants):
        operands.append(Value.of_constant(new_name(f"{region.name}/{place}", taken), Constant.of(array)))
    inside, asked_for = set(region.nodes), set(graph.outputs)
    for node in reversed(list(region.nodes)):
        outputs = node.present_outputs
        shared = any(value in asked_for or any(r not in inside for r, _ in value.uses) for value in outputs)
        if not shared or any(value in region.results for value in node.present_outputs):
            graph.remove(node)
    results = []
    for value in region.results:
        order, made = built.orders.get(value), value
        if order is not None:
            made = Value(new_name(f"{value.name}/turned", taken), Fact(_ordered(value, order)))
            graph.add(Node(Transpose(perm=_back(order)), [made], [value], region.provenance))
        results.append(made)
    graph.add(Node(op, operands, results, region.provenance))


def _copy_of(value: Value, copies: dict[Value, Value]) -> Value:
    if value not in copies:
        assert value.constant is not None
        copies[value] = Value.of_constant(f"c{len(copies)}", value.constant)
    return copies[value]


def _turned(graph: Graph, value: Value, order: Order | None, region: Region, taken: set[str]) -> Value:
    if order is None:
        return value
    name = new_name(f"{value.name}/turned", taken)
    return graph.compute(Transpose(perm=order), [value], [name], region.provenance)[0]


def _ordered(value: Value, order: Order | None) -> TensorType:
    shape = value.type.shape if order is None else tuple(value.type.shape[axis] for axis in order)
    return TensorType(value.type.dtype, shape)


def _back(order: Order) -> Order:
    """The order of axes that undoes this one."""
    return tuple(order.index(axis) for axis in range(len(order)))
