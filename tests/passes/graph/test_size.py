"""All graph passes together take time in proportion to the graph."""

from __future__ import annotations

import time

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dtypes import f32
from mccompile.base.tensor import TensorType
from mccompile.graph.ir import Fact, Graph, Node, Value
from mccompile.ops.api import resolve
from mccompile.passes.api import GRAPH, PROGRAM, Context, PassManager, ProgramPass
from mccompile.passes.lower import lower
from mccompile.passes.program.fuse import fuse
from mccompile.pipeline import GRAPH_PASSES

NODES = 10_000  # where time grows with their square, it is several times what is allowed


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
def test_ten_thousand_nodes(context: Context, graph: object, left: int) -> None:
    assert callable(graph)
    net = graph()
    start = time.process_time()
    PassManager(context).run(GRAPH, net, GRAPH_PASSES)
    assert time.process_time() - start < 12
    assert abs(len(net) - left) <= 2


def picture_chain() -> Graph:
    """Convolutions, activations and sums, all channels-last in the end, and some of them read twice."""
    fact = Fact(TensorType(f32, (1, 2, 4, 4)))
    weights = Value.of_constant("w", Constant.of(np.ones((2, 2, 1, 1), np.float32)))
    value = Value("x", fact)
    graph = Graph("pictures", [value])
    before = value
    for number in range(NODES // 4):
        for name in ("Conv", "Relu", "Exp", "Add"):
            ins = {"Conv": [value, weights], "Add": [value, before]}.get(name, [value])
            result = Value(f"{name}{number}", fact)
            graph.add(Node(resolve("", name)(), ins, [result], (f"{name}{number}",)))
            value = result
        before = value
    graph.outputs.append(value)
    return graph


@pytest.mark.parametrize("graph", [lambda: chain(["Exp", "Tanh"]), picture_chain], ids=["elementwise", "pictures"])
def test_ten_thousand_nodes_become_a_fused_program(context: Context, graph: object) -> None:
    assert callable(graph)
    net = graph()
    start = time.process_time()
    manager = PassManager(context)
    manager.run(GRAPH, net, GRAPH_PASSES)
    program = lower(net)
    manager.run(PROGRAM, program, [ProgramPass("fuse", fuse)])
    assert time.process_time() - start < 25
    assert len(list(program.calls())) <= NODES // 4 + 1
