"""Steps done a second time: what is computed stays the same, goals are reached, chains get what is best for them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from mccompile.memory.recompute import Line, Recomputation, Step, recomputed

MACS = 10


def chain(count: int) -> Line:
    """Layers of equal size, and backward as many steps, each of which reads what its layer read."""
    steps = [Step(i, (i,), (i + 1,), again=Recomputation(MACS, MACS)) for i in range(count)]
    for back in range(count):
        before = count + back
        steps.append(Step(before, (before, count - 1 - back), (before + 1,), (before,)))
    return Line(tuple(steps), (0, *[100] * (2 * count)), frozenset([2 * count]))


def random_line(dice: random.Random, count: int) -> Line:
    steps, sizes = [], [0, 40]
    for call in range(count):
        reads = tuple(sorted({dice.randrange(len(sizes)) for _ in range(3)}))
        writes = tuple(range(len(sizes), len(sizes) + dice.choice((1, 1, 2))))
        sizes += [8 * dice.randint(0, 20) for _ in writes]
        again = Recomputation(dice.randint(1, 9), dice.randint(0, 9)) if dice.random() < 0.8 else None
        steps.append(Step(call, reads, writes, reads[:1], dice.choice((0, 24)), again))
    lasting = frozenset(value for step in steps[-3:] if step.again is None for value in step.writes)
    return Line(tuple(steps), tuple(sizes), lasting, frozenset(dice.sample(range(len(sizes)), 3)))


def computed(line: Line, given: Line) -> list[tuple[int, tuple[object, ...]]]:
    """What each step of the given line computes, as an expression; every repetition has to compute the same."""
    meaning: dict[int, object] = {value: value for value in range(2)}
    found: dict[int, tuple[object, ...]] = {}
    for step in line.steps:
        expression = tuple(meaning[value] for value in step.reads)
        assert found.setdefault(step.call, expression) == expression
        assert set(step.over) <= set(step.reads)
        if step.again is None:
            assert step.writes == given.steps[step.call].writes
        meaning |= {value: (step.call, which) for which, value in enumerate(step.writes)}
    return sorted(found.items())


@pytest.mark.parametrize("seed", range(25))
def test_the_same_is_computed(seed: int) -> None:
    dice = random.Random(seed)
    line = random_line(dice, 24)
    found = recomputed(line, line.peak * 3 // 4, 10**9)
    assert computed(found, line) == computed(line, line)
    assert found.peak <= line.peak
    fixed = [(s.call, v) for s in found.steps if s.again is None for v in s.reads if v in line.fixed]
    assert fixed == [(s.call, v) for s in line.steps if s.again is None for v in s.reads if v in line.fixed]


def test_nothing_is_done_again_within_the_goal() -> None:
    line = chain(16)
    assert recomputed(line, line.peak, 10**9) == line


@pytest.mark.parametrize(("count", "kept", "again"), [(16, 8, 8), (64, 32, 32), (64, 16, 48)])
def test_layers_of_a_chain_are_made_once_more_where_that_is_enough(count: int, kept: int, again: int) -> None:
    found = recomputed(chain(count), 100 * kept, 10**9)
    assert found.peak <= 100 * kept
    assert found.macs == again * MACS


def test_layers_are_made_several_times_where_less_memory_asks_for_it() -> None:
    assert recomputed(chain(64), 900, 10**9).peak <= 900


def test_macs_have_a_limit() -> None:
    found = recomputed(chain(16), 400, 5 * MACS)
    assert 0 < found.macs <= 5 * MACS


def test_a_floor_counts_what_can_be_made_again_only_where_it_is_read() -> None:
    line = chain(6)
    assert line.floor == 200  # of a layer: what it reads, and what is handed on, over which the next one lies
    assert all(recomputed(line, goal, 10**9).peak >= line.floor for goal in (0, 200, 300))


def test_a_new_weight_lies_beside_the_old_one_as_long_as_that_is_read() -> None:
    """Value 1 comes to lie over value 4."""
    steps = (Step(0, (0, 4), (1,)), Step(1, (0,), (2,)), Step(2, (2,), (3,)))
    line = Line(steps, (0, 100, 10, 10, 0), instead={1: 4})
    assert list(line.held()) == [0, 10, 20]
    late = replace(line, steps=(*steps[:2], Step(2, (2, 4), (3,))))
    assert list(late.held()) == [100, 110, 120]
    assert late.peak == late.floor == 120


def test_a_weight_that_is_read_again_keeps_the_new_one_beside_it() -> None:
    """Steps: a layer, what is large, the new weight, and a late reader of the layer, for which it may be made again."""
    steps = (
        Step(0, (0,), (1,), again=Recomputation(1)),
        Step(1, (), (2,)),
        Step(2, (2, 0), (3,)),
        Step(3, (1,), (4,)),
    )
    line = Line(steps, (0, 100, 100, 150, 1), frozenset({4}), instead={3: 0})
    assert recomputed(line, 110, 10).peak == 200  # done again it would take 251
