"""Which sizes the parts of a plan name, and where a run knows them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mccompile.base.dims import Symbol, symbol
from mccompile.base.dtypes import f32
from mccompile.base.tensor import TensorType
from mccompile.plan import ir
from mccompile.plan.sizes import needed, needs, of_state, of_tensor, unknown
from tests import small_models
from tests.small_models import compiled

A, B, C, D = (Symbol(name, 0, 9) for name in "abcd")


@pytest.fixture(scope="module")
def plan() -> ir.Plan:
    """One whose sizes are all numbers."""
    return compiled(small_models.conv()).plan


def at(*sizes: Symbol) -> ir.Address:
    offset = 0
    for size in sizes:
        offset = offset + symbol(size.name, size.low, size.high)
    return ir.Address(ir.ARENA, offset)


def told(*sizes: Symbol) -> ir.Argument:
    return ir.Argument("x", at(*sizes), TensorType(f32, (1,)), 0, 4, False)


def step(plan: ir.Plan, *sizes: Symbol) -> ir.Step:
    """One that lies where the sizes say."""
    first = next(plan.steps())
    return replace(first, arguments=(replace(first.arguments[0], address=at(*sizes)), *first.arguments[1:]))


def tensor(place: ir.Address, *shape: Symbol) -> ir.Tensor:
    return ir.Tensor("t", "t", TensorType(f32, tuple(symbol(each.name, 0, 9) for each in shape)), place)


def halt() -> ir.Halt:
    return ir.Halt("", (), "UNSUPPORTED")


def loop(
    *items: ir.Item, counter: str = "k", trips: int | ir.Argument = 3, condition: ir.Argument | None = None
) -> ir.Repeat:
    return ir.Repeat(counter, trips, condition, (), items, ())


def test_a_tensor_names_its_place_and_its_shape() -> None:
    assert of_tensor(tensor(at(A, B), B, C)) == {"a", "b", "c"}


def test_a_state_that_is_brought_to_its_place_names_both_places_and_how_much() -> None:
    assert of_state(ir.State(tensor(at(A), B), at(A))) == set()
    assert of_state(ir.State(tensor(at(A, B), B, C), at(A, B, C, D))) == {"a", "b", "c", "d"}


def test_items_name_what_they_neither_measure_nor_count(plan: ir.Plan) -> None:
    swap = ir.Swap("p", "q", at(A), at(A, B), 4, at(A, B, C), True)
    counter = Symbol("k", 0, 2)
    cases: list[tuple[ir.Item, str]] = [
        (step(plan, A, B), "ab"),
        (ir.Branch(told(A, B), (step(plan, B, C),), (step(plan, C, D),), ()), "abcd"),
        (loop(step(plan, A, counter), trips=told(A, B), condition=told(B, C)), "abc"),
        (ir.Repeat("k", 3, None, (swap,), (step(plan, C, D),), ()), "abcd"),
        (ir.RowRegion((ir.Stage(step(plan, A, B), 1, 1, ()), ir.Stage(step(plan, B, C), 1, 1, ())), ()), "abc"),
        (ir.Measured(D, told(A), ()), "a"),
        (halt(), ""),
    ]
    for item, names in cases:
        assert needs(item) == set(names), item
    assert needed([step(plan, A, B), ir.Measured(C, told(B), ()), step(plan, C, D)]) == {"a", "b", "d"}


def problems(plan: ir.Plan, *items: ir.Item, given: tuple[Symbol, ...] = (A,)) -> list[str]:
    return sorted(problem.partition(" names ")[2] for problem in unknown(replace(plan, items=items, given=given)))


def missing(names: str) -> list[str]:
    return [f"{name}, which is not known there" for name in names]


def test_what_is_measured_is_known_from_there_on(plan: ir.Plan) -> None:
    measured = ir.Measured(B, told(A), ())
    assert problems(plan, measured, step(plan, A, B)) == []
    assert problems(plan, step(plan, A, B), measured) == missing("b")
    assert problems(plan, ir.Measured(B, told(C), ())) == missing("c")
    positive = ir.Measured(B, told(A), (), (symbol("b", 0, 9) + symbol("d", 0, 9) - symbol("a", 0, 9),))
    assert problems(plan, positive) == missing("d")


def test_after_branches_that_is_known_what_all_that_go_on_have_measured(plan: ir.Plan) -> None:
    one, two = ir.Measured(B, told(A), ()), ir.Measured(C, told(A), ())
    use = step(plan, A, B, C)
    assert problems(plan, ir.Branch(told(A), (one, two), (two, one), ()), use) == []
    assert problems(plan, ir.Branch(told(A), (one, two), (one,), ()), use) == missing("c")
    assert problems(plan, ir.Branch(told(A), (one, two), (halt(),), ()), use) == []
    assert problems(plan, ir.Branch(told(A), (one, two), (halt(), one), ()), use) == missing("c")
    assert problems(plan, ir.Branch(told(A), (halt(),), (halt(),), ()), use) == missing("bc")
    assert problems(plan, ir.Branch(told(A, D), (step(plan, B),), (step(plan, C),), ())) == missing("bcd")


@pytest.mark.parametrize(
    ("trips", "condition", "after"), [(1, None, ""), (0, None, "b"), (told(A), None, "b"), (2, told(A), "b")]
)
def test_after_a_loop_that_is_known_what_it_measures_if_it_runs_for_sure(
    plan: ir.Plan, trips: int | ir.Argument, condition: ir.Argument | None, after: str
) -> None:
    measured = loop(ir.Measured(B, told(A), ()), trips=trips, condition=condition)
    assert problems(plan, measured, step(plan, A, B)) == missing(after)


def test_a_counter_is_known_in_its_loop(plan: ir.Plan) -> None:
    counter = Symbol("k", 0, 2)
    assert problems(plan, loop(step(plan, counter, A))) == []
    assert problems(plan, loop(step(plan, counter, B))) == missing("b")
    assert problems(plan, loop(step(plan, A)), step(plan, counter)) == missing("k")
    assert problems(plan, loop(step(plan, A), trips=told(A, C))) == missing("c")


def test_what_is_told_before_a_run_names_what_is_given(plan: ir.Plan) -> None:
    inputs = replace(plan, given=(A,), inputs=(tensor(at(A), B),))
    assert unknown(inputs) == ["t names b"]
    outputs = replace(plan, given=(A,), outputs=(tensor(at(A), B),))
    assert unknown(outputs) == ["output t names b"]
    states = replace(plan, given=(A,), states=(ir.State(tensor(at(A), A), at(A, B)),))
    assert unknown(states) == ["state t names b"]
    resized = replace(plan, given=(A,), not_negative=(symbol("a", 0, 9) - symbol("b", 0, 9),))
    assert unknown(resized) == ["resize names b"]
