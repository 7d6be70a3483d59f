"""Graphs with their gradients in float64: standard nodes by the judge, Pointwise by what its expression means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from mccompile.frontend.judged import judged
from mccompile.frontend.save import is_standard, node_model
from mccompile.graph.ir import Graph, Node, Value
from mccompile.judge.run import judge, widened
from mccompile.ops.pointwise import Pointwise

Run = Callable[[Sequence[Any]], list[Any]]


class Evaluator:
    """Models of nodes are made once, for any number of runs."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.runs: dict[Node, Run] = {}

    def __call__(self, feeds: Mapping[str, np.ndarray], wanted: Sequence[Value]) -> list[np.ndarray]:
        found: dict[Value, Any] = {value: widened(feeds[value.name]) for value in self.graph.inputs}
        found |= {value: widened(value.constant.array) for value in self.graph.constants() if value.constant}
        needed = _needed(wanted)
        for node in self.graph.nodes:
            if node in needed:
                results = self.run(node)([found[value] if value else None for value in node.inputs])
                made = zip([value for value in node.outputs if value], results, strict=True)
                found.update(made)
        return [found[value] if value in found else widened(value.constant.array) for value in wanted]

    def run(self, node: Node) -> Run:
        if node not in self.runs:
            self.runs[node] = _run_of(node)
        return self.runs[node]


def _needed(wanted: Sequence[Value]) -> set[Node]:
    found: set[Node] = set()
    waiting = [value.producer for value in wanted]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting.extend(value.producer for value in node.present_inputs)
    return found


def _run_of(node: Node) -> Run:
    if isinstance(node.op, Pointwise):
        formula = re.sub(r"\.f(16|32)\b|\.bf16\b", ".f64", node.op.formula)
        op = replace(node.op, formula=re.sub(r"\bb?f(16|32)\(", "f64(", formula))
        return lambda arrays: [op.evaluate(arrays)]
    assert is_standard(node), node
    return partial(_judged, judged(node_model(node)))


def _judged(graph: Any, arrays: Sequence[Any]) -> list[Any]:
    return list(judge(graph, {f"in{i}": array for i, array in enumerate(arrays) if array is not None}).values())
