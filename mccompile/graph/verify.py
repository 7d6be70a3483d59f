"""Checks every invariant of a graph; run after every pass."""

from __future__ import annotations

import operator

from ..base.errors import InternalError
from .ir import Graph, Node, Op, Refused, Value


def verify(graph: Graph, after: str = "") -> None:
    """Raises InternalError with everything that is wrong."""
    problems = _problems(graph, set())
    if problems:
        place = f" after {after}" if after else ""
        raise InternalError(f"graph {graph.name!r} is broken{place}:\n  " + "\n  ".join(problems[:20]))


def _problems(graph: Graph, outside: set[Value]) -> list[str]:
    problems: list[str] = []
    visible = outside | set(graph.inputs)
    names: set[str] = set()
    for value in graph.values():
        if value.name in names:
            problems.append(f"two values are named {value.name!r}")
        names.add(value.name)
    for node in graph.nodes:
        for position, operand in enumerate(node.inputs):
            if operand is None:
                continue
            if operand.constant is None and operand not in visible:
                problems.append(f"{node} reads {operand} before it is made")
            if (node, position) not in operand.uses:
                problems.append(f"{operand} does not know that {node} reads it")
        for region in node.regions:
            problems += _problems(region, visible)
        problems += _check_types(node)
        for value in node.present_outputs:
            if value in visible:
                problems.append(f"{value} is made twice")
            if value.producer is not node:
                problems.append(f"{value} does not know its producer {node}")
            visible.add(value)
    for value in graph.outputs:
        if value.constant is None and value not in visible:
            problems.append(f"output {value} is never made")
    return problems


def _check_types(node: Node) -> list[str]:
    if type(node.op).infer is Op.infer:
        return [f"{node} has no type rule"]
    asked = (node.op, *(value and value.fact for value in (*node.inputs, None, *node.outputs)))
    if not node.regions and len(asked) == len(node.right) and all(map(operator.is_, asked, node.right)):
        return []  # the same question as after the last pass
    try:
        facts = node.op.infer(node.site())
    except Refused as refused:
        return [f"{node}: {refused.why}"]
    if len(facts) < len(node.outputs):
        return [f"{node} has {len(node.outputs)} results, its type rule gives {len(facts)}"]
    wrong = [
        f"{value} has type {value.type}, its operator says {fact.type}"
        for value, fact in zip(node.outputs, facts, strict=False)
        if value is not None and value.type != fact.type
    ]
    if not wrong:
        node.right = asked
    return wrong
