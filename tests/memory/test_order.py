from __future__ import annotations

import random

import pytest

from mccompile.base.errors import InternalError
from mccompile.memory import order
from mccompile.memory.order import Node, Tensor, best_order, peak_of, results_first
from tests.counting import calls

Graph = tuple[list[Node], list[Tensor]]


def random_graph(dice: random.Random, count: int) -> Graph:
    consumers: list[tuple[int, ...]] = [() for _ in range(count)]
    for node in range(count):
        for earlier in range(max(0, node - 6), node):
            if dice.random() < 0.35:
                consumers[earlier] += (node,)
    tensors = [Tensor(16 * dice.randint(1, 20), i, consumers[i], not consumers[i]) for i in range(count)]
    tensors.append(Tensor(64, None, (0,)))
    nodes = []
    for node in range(count):
        operands = [i for i in range(node) if node in consumers[i]]
        reuse = tuple(i for i in operands if dice.random() < 0.3)
        nodes.append(Node((), reuse, dice.choice((0, 0, 32))))
    return nodes, tensors


def smallest_peak(graph: Graph) -> int:
    nodes, tensors = graph
    before = [{t.producer for t in tensors if t.producer is not None and i in t.consumers} for i in range(len(nodes))]

    def orders(done: tuple[int, ...]) -> list[tuple[int, ...]]:
        ready = [i for i in range(len(nodes)) if i not in done and before[i] <= set(done)]
        return [full for i in ready for full in orders((*done, i))] if ready else [done]

    return min(peak_of(nodes, tensors, full) for full in orders(()))


def assert_topological(graph: Graph, found: tuple[int, ...]) -> None:
    nodes, tensors = graph
    rank = {node: at for at, node in enumerate(found)}
    assert sorted(found) == list(range(len(nodes)))
    for tensor in tensors:
        assert all(tensor.producer is None or rank[tensor.producer] < rank[user] for user in tensor.consumers)


def test_the_branch_that_needs_much_memory_runs_before_the_one_whose_result_waits() -> None:
    # 0 feeds 1 (a small result, which waits for 4) and 2 (a large one, which 3 shrinks).
    tensors = [
        Tensor(10, 0, (1, 2)),
        Tensor(30, 1, (4,)),
        Tensor(100, 2, (3,)),
        Tensor(10, 3, (4,)),
        Tensor(10, 4, (), True),
    ]
    nodes = [Node()] * 5
    assert best_order(nodes, tensors) == (0, 2, 3, 1, 4)
    assert (peak_of(nodes, tensors, range(5)), peak_of(nodes, tensors, (0, 2, 3, 1, 4))) == (140, 120)


def test_a_given_order_that_is_none_is_refused() -> None:
    with pytest.raises(InternalError, match="node 0 before one of"):
        best_order([Node((1,)), Node()], [])


def test_peak_counts_workspace_and_the_operand_that_is_overwritten() -> None:
    tensors = [Tensor(32, None, (0,)), Tensor(32, 0, (1,)), Tensor(32, 1, (), True)]
    assert peak_of([Node(), Node()], tensors, (0, 1)) == 64
    assert peak_of([Node(overwrites=(0,)), Node(overwrites=(1,))], tensors, (0, 1)) == 32
    assert peak_of([Node(workspace=100), Node()], tensors, (0, 1)) == 164


def test_small_graphs_reach_the_exhaustive_optimum() -> None:
    dice = random.Random(1)
    improved = 0
    for _ in range(200):
        graph = random_graph(dice, dice.randint(1, 7))
        found = best_order(*graph)
        assert_topological(graph, found)
        optimum = smallest_peak(graph)
        assert peak_of(*graph, found) == optimum
        improved += optimum < peak_of(*graph, range(len(graph[0])))
    assert improved > 30


def test_beam_is_topological_and_never_worse_than_the_given_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "EXACT_NODES", 0)
    dice = random.Random(2)
    improved = 0
    for _ in range(10):
        graph = random_graph(dice, 60)
        found = best_order(*graph)
        assert_topological(graph, found)
        given = peak_of(*graph, range(60))
        assert peak_of(*graph, found) <= given
        improved += peak_of(*graph, found) < given
    assert improved >= 5


def test_the_given_order_stays_when_nothing_is_gained() -> None:
    tensors = [Tensor(16, i, (3,)) for i in range(3)] + [Tensor(16, 3, (), True)]
    assert best_order([Node()] * 4, tensors) == (0, 1, 2, 3)


def test_dependencies_without_a_tensor_are_kept() -> None:
    # Node 1 would better run first, but must not.
    tensors = [Tensor(64, 0, (2,)), Tensor(640, None, (1,)), Tensor(16, 1, (2,)), Tensor(16, 2, (), True)]
    assert best_order([Node(), Node(), Node()], tensors) == (1, 0, 2)
    assert best_order([Node(), Node((0,)), Node()], tensors) == (0, 1, 2)


@pytest.mark.parametrize("reach", [1, 2])
def test_chains_are_ordered_in_proportion_to_their_length(reach: int) -> None:
    def chain(count: int) -> Graph:
        tensors = [Tensor(16 + i % 31, i, (min(i + reach, count - 1),), False) for i in range(count - 1)]
        return [Node()] * count, [*tensors, Tensor(16, count - 1, (), True)]

    assert calls(lambda: best_order(*chain(8_000))) < 4.4 * calls(lambda: best_order(*chain(2_000)))
    assert sorted(best_order(*chain(8_000))) == list(range(8_000))


def test_an_order_is_searched_once() -> None:
    """Trials of where tensors lie ask for that of the same calls again."""
    draw = random.Random(3)
    consumers = [draw.sample(range(i + 1, 31), min(2, 30 - i)) for i in range(30)]
    tensors = [Tensor(draw.randrange(1, 99), i, tuple(consumers[i]), False) for i in range(30)]
    first = calls(lambda: best_order([Node()] * 31, tensors))
    assert 10 * calls(lambda: best_order([Node()] * 31, list(tensors))) < first


def test_nothing_is_searched_where_the_last_node_needs_as_much_as_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the branches of one input into one result do: all parts and the input are alive in the end, in any order."""
    nodes = [Node() for _ in range(500)]
    tensors = [Tensor(64, None, tuple(range(500))), *(Tensor(4, node, (), True) for node in range(500))]
    ran = 0
    run = order._Piece.run

    def counted(piece: order._Piece, node: int, done: int, live: int) -> tuple[int, int]:
        nonlocal ran
        ran += 1
        return run(piece, node, done, live)

    monkeypatch.setattr(order._Piece, "run", counted)
    assert best_order(nodes, tensors) == tuple(range(500))
    assert ran <= 3 * len(nodes)


@pytest.mark.parametrize("seed", range(20))
def test_results_first_runs_each_node_behind_its_operands(seed: int) -> None:
    nodes, tensors = random_graph(random.Random(seed), 14)
    found = results_first(nodes, tensors)
    assert sorted(found) == list(range(14))
    places = {node: place for place, node in enumerate(found)}
    for tensor in tensors:
        assert all(tensor.producer is None or places[tensor.producer] < places[user] for user in tensor.consumers)


def test_a_result_is_made_in_front_of_what_leads_on_to_others() -> None:
    """Gradients 0, 1 and 2, each made of the one before it; 3 and 4 are a new weight of 0 in two steps, 5 one of 1."""
    nodes = [Node() for _ in range(6)]
    readers = [(1, 3), (2, 5), (), (4,), (), ()]
    tensors = [Tensor(8, node, users, not users) for node, users in enumerate(readers)]
    assert results_first(nodes, tensors) == (0, 3, 4, 1, 2, 5)
