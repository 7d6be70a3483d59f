"""All graph passes together take time in proportion to the graph."""

from __future__ import annotations

import time

import pytest

from mccompile.base.dtypes import f32
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Graph, Node, Value
from mccompile.ops.api import resolve
from mccompile.passes.api import GRAPH, Context, PassManager
from mccompile.pipeline import GRAPH_PASSES

NODES = 20_000


def chain(operators: list[str]) -> Graph:
    fact = Fact(TensorType(f32, (4,)))
    value = Value("x", fact)
    graph = Graph("chain", [value])
    for number in range(NODES):
        result = Value(f"v{number}", fact)
        op = resolve("", operators[number % len(operators)])()
        graph.add(Node(op, [value], [result], (f"n{number}",)))
        value = result
    graph.outputs.append(value)
    return graph


def star() -> Graph:
    """One value that everybody reads."""
    fact = Fact(TensorType(f32, (4,)))
    x = Value("x", fact)
    graph = Graph("star", [x])
    sums = [Value(f"s{number}", fact) for number in range(NODES // 2)]
    last = x
    for number, result in enumerate(sums):
        copy = Value(f"v{number}", fact)
        graph.add(Node(resolve("", "Identity")(), [x], [copy], (f"n{number}",)))
        graph.add(Node(resolve("", "Add")(), [last, copy], [result], (f"s{number}",)))
        last = result
    graph.outputs.append(last)
    return graph


@pytest.mark.parametrize(
    ("graph", "left"),
    [
        (lambda: chain(["Exp", "Tanh"]), NODES),
        (lambda: chain(["Identity", "Exp"]), NODES // 2),
        (lambda: chain(["Neg"]), 0),
        (star, NODES // 2),
    ],
    ids=["nothing to do", "identities", "pairs", "star"],
)
def test_twenty_thousand_nodes(context: Context, graph: object, left: int) -> None:
    assert callable(graph)
    net = graph()
    start = time.monotonic()
    PassManager(context).run(GRAPH, net, GRAPH_PASSES)
    assert time.monotonic() - start < 30
    assert abs(len(net) - left) <= 2
