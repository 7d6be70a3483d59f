"""observe: makes inner tensors of the model outputs, for `--observe`.

Where quantized integers become floats and integers again, what lies between is one operator over integers, which rounds
once. Floats on the way that somebody looks at are computed beside that, so that looking changes no result.
"""

from __future__ import annotations

from dataclasses import replace

from ...base.errors import Problem, WrongUse, raise_all
from ...base.names import Names
from ...base.near import meant
from ...graph.ir import Graph, Node, Value, graphs
from ...ops.api import Operator
from ...ops.quantize import DequantizeLinear

_SHOWN = 8  # names of tensors that a message lists


def observe(graph: Graph, names: tuple[str, ...]) -> None:
    """Makes inner tensors outputs."""
    found = {value.name: value for value in graph.values()}
    unknown = [name for name in names if name not in found]
    problems = []
    made = [value.name for value in graph.values() if value.constant is None]
    why = f"its tensors are {', '.join(made[:_SHOWN])}{', ...' if len(made) > _SHOWN else ''}"
    for name in unknown:
        fix = meant(name, found, "--observe") or 'name one that `mccompile opt MODEL --passes ""` shows'
        problems.append(Problem(f"there is no tensor {name!r} to observe", graph.name, why, fix))
    raise_all(WrongUse, problems)
    taken = Names(value.name for part in graphs(graph) for value in part.values())
    for name in dict.fromkeys(names):
        if not graph.is_output(found[name]):
            graph.outputs.append(_beside(graph, found[name], taken))


def _beside(graph: Graph, value: Value, taken: Names) -> Value:
    """A copy of a float that comes of quantized integers; any other value itself."""
    behind = _floats_behind(graph, value) if value.type.dtype.is_float else []
    if not any(_dequantizes(node) for node in behind):
        return value
    copies: dict[Value, Value] = {}
    for node in behind:
        ins = [None if each is None else copies.get(each, each) for each in node.inputs]
        for each in node.present_outputs:
            copies[each] = Value(taken.take(f"{each.name}/observed"), replace(each.fact))
        copy = Node(node.op, ins, [None if each is None else copies[each] for each in node.outputs], node.provenance)
        copy.apart = True
        graph.add(copy)
    made = copies[value]
    made.name, value.name = value.name, made.name
    return made


def _floats_behind(graph: Graph, value: Value) -> list[Node]:
    """Nodes that make it of integers, or of inputs, each after those that it reads."""
    needed: set[Value] = {value}
    behind: list[Node] = []
    for node in reversed(list(graph.nodes)):
        may_be_copied = isinstance(node.op, Operator) and not node.regions and not node.op.random
        if may_be_copied and needed.intersection(node.present_outputs):
            behind.append(node)
            if not isinstance(node.op, DequantizeLinear):
                needed.update(each for each in node.present_inputs if each.type.dtype.is_float)
    return behind[::-1]


def _dequantizes(node: Node) -> bool:
    first = node.inputs[0]
    return isinstance(node.op, DequantizeLinear) and first is not None and first.constant is None
