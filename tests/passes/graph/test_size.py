"""All graph passes together take work in proportion to the graph: counted in calls, never timed."""

from __future__ import annotations

from collections.abc import Callable

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
from tests.counting import calls

FEW, TIMES = 150, 4
MORE = 1.5  # than that, per node, is what grows with their square


def chain(operators: list[str], nodes: int) -> Graph:
    fact = Fact(TensorType(f32, (4,)))
    value = Value("x", fact)
    graph = Graph("chain", [value])
    for number in range(nodes):
        result = Value(f"v{number}", fact)
        op = resolve("", operators[number % len(operators)])()
        graph.add(Node(op, [value], [result], (f"n{number}",)))
        value = result
    graph.outputs.append(value)
    return graph


def star(nodes: int) -> Graph:
    """One value that everybody reads."""
    fact = Fact(TensorType(f32, (4,)))
    x = Value("x", fact)
    graph = Graph("star", [x])
    sums = [Value(f"s{number}", fact) for number in range(nodes // 2)]
    last = x
    for number, result in enumerate(sums):
        copy = Value(f"v{number}", fact)
        graph.add(Node(resolve("", "Identity")(), [x], [copy], (f"n{number}",)))
        graph.add(Node(resolve("", "Add")(), [last, copy], [result], (f"s{number}",)))
        last = result
    graph.outputs.append(last)
    return graph


def assert_in_proportion(work: Callable[[Graph], object], made: Callable[[int], Graph]) -> None:
    few, many = made(FEW), made(FEW * TIMES)
    assert calls(lambda: work(many)) < calls(lambda: work(few)) * TIMES * MORE


@pytest.mark.parametrize(
    ("made", "left"),
    [
        (lambda nodes: chain(["Exp", "Tanh"], nodes), 1.0),
        (lambda nodes: chain(["Identity", "Exp"], nodes), 0.5),
        (lambda nodes: chain(["Neg"], nodes), 0.0),
        (star, 0.5),
    ],
    ids=["nothing to do", "identities", "pairs", "star"],
)
def test_graph_passes(context: Context, made: Callable[[int], Graph], left: float) -> None:
    def work(net: Graph) -> None:
        nodes = len(net)
        PassManager(context).run(GRAPH, net, GRAPH_PASSES)
        assert abs(len(net) - left * nodes) <= 2

    assert_in_proportion(work, made)


def picture_chain(nodes: int) -> Graph:
    """Convolutions, activations and sums, all channels-last in the end, and some of them read twice."""
    fact = Fact(TensorType(f32, (1, 2, 4, 4)))
    weights = Value.of_constant("w", Constant.of(np.ones((2, 2, 1, 1), np.float32)))
    value = Value("x", fact)
    graph = Graph("pictures", [value])
    before = value
    for number in range(nodes // 4):
        for name in ("Conv", "Relu", "Exp", "Add"):
            ins = {"Conv": [value, weights], "Add": [value, before]}.get(name, [value])
            result = Value(f"{name}{number}", fact)
            graph.add(Node(resolve("", name)(), ins, [result], (f"{name}{number}",)))
            value = result
        before = value
    graph.outputs.append(value)
    return graph


@pytest.mark.parametrize(
    "made", [lambda nodes: chain(["Exp", "Tanh"], nodes), picture_chain], ids=["elementwise", "pictures"]
)
def test_lowering_and_fusion(context: Context, made: Callable[[int], Graph]) -> None:
    def work(net: Graph) -> None:
        nodes, manager = len(net), PassManager(context)
        manager.run(GRAPH, net, GRAPH_PASSES)
        program = lower(net)
        manager.run(PROGRAM, program, [ProgramPass("fuse", fuse)])
        assert len(list(program.calls())) <= nodes // 4 + 1

    assert_in_proportion(work, made)
