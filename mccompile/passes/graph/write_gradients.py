"""write_gradients: replaces nodes `Gradient` of ai.onnx.preview.training by the nodes that compute these gradients."""

from __future__ import annotations

from ...base.errors import Problem, UnsupportedModel
from ...base.provenance import show
from ...graph.ir import Graph, Node, Value
from ...ops.identity import Identity
from ...ops.training import Gradient
from ..api import Context
from ..learn.gradients import gradients


def write_gradients(graph: Graph, context: Context) -> None:
    asking = [node for node in graph.nodes if isinstance(node.op, Gradient)]
    values = {value.name: value for value in graph.values()} if asking else {}
    for node in asking:
        assert isinstance(node.op, Gradient)
        of = values.get(node.op.y)
        if of is None:
            raise _refused(node, f"there is no value {node.op.y!r} beside it")
        found = gradients(graph, of, [_operand(node, i) for i in range(len(node.op.xs))])
        for old, new in zip(node.outputs, found, strict=True):
            if old is not None:  # two may be the same value, or a constant, which take over no output's name
                node.outputs[node.outputs.index(old)] = None
                graph.add(Node(Identity(), [new], [old], node.provenance))
        graph.remove(node)
    if asking:
        graph.sort()


def _operand(node: Node, index: int) -> Value:
    """What it is the gradient by. Other operands than those named would ask for the network at another point."""
    assert isinstance(node.op, Gradient)
    names = (*node.op.xs, *node.op.zs)
    for place, name in enumerate(names):
        value = node.inputs[place]
        if value is None or value.name != name:
            raise _refused(node, f"operand {place} is {value.name if value else 'absent'}, not {name}")
    found = node.inputs[index]
    assert found is not None
    return found


def _refused(node: Node, why: str) -> UnsupportedModel:
    where = f'node "{show(node.provenance)}" (Gradient)'
    fix = "give it the tensors that xs and zs name"
    return UnsupportedModel(Problem("unsupported form of Gradient", where, why, fix))
