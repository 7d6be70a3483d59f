"""What a plan and its parts say of themselves."""

from __future__ import annotations

from dataclasses import is_dataclass, replace

import pytest

from mccompile.plan import ir
from mccompile.plan.ir import (
    ARENA,
    BLOB,
    Address,
    Arena,
    Branch,
    Halt,
    Item,
    Plan,
    Repeat,
    RowRegion,
    Shared,
    Stage,
    State,
    Step,
    Swap,
    is_arena,
    swaps,
    walk,
    with_steps,
)
from tests import small_models
from tests.small_models import compiled


@pytest.fixture(scope="module")
def plan() -> Plan:
    return compiled(small_models.conv()).plan


@pytest.mark.parametrize(
    ("base", "answer"), [("arena", True), ("arena_fast", True), ("arenas", False), ("a", False), (BLOB, False)]
)
def test_arenas_are_known_by_name(base: str, answer: bool) -> None:
    assert is_arena(base) == answer


def test_nothing_of_a_plan_can_change() -> None:
    for name, found in vars(ir).items():
        if isinstance(found, type) and found.__module__ == ir.__name__:
            assert is_dataclass(found) and found.__dataclass_params__.frozen, name


def test_a_step_touches_each_arena_from_the_first_byte_to_the_last(plan: Plan) -> None:
    step = next(plan.steps())
    places = [(ARENA, 64, 96), (BLOB, 0, 900), (ARENA, 32, 48), ("arena_fast", 8, 16), (ARENA, 200, 200), (ARENA, 4, 2)]
    arguments = [replace(step.arguments[0], address=Address(b, 0), low=low, high=high) for b, low, high in places]
    assert replace(step, arguments=tuple(arguments)).arena_ranges == {"arena": (32, 96), "arena_fast": (8, 16)}


def test_a_step_has_as_many_workers_as_its_widest_phase() -> None:
    assert Shared(0, (((0, 4),), ((0, 1), (1, 3), (3, 4))), 0).workers == 3


def nested(plan: Plan) -> tuple[Item, ...]:
    one, two = plan.steps()
    swap = Swap("p", "q", Address(ARENA, 0), Address(ARENA, 16), 16, Address(ARENA, 32), True)
    loop = Repeat("k", 3, None, (swap,), (two, Repeat("l", 2, None, (replace(swap, now="r"),), (one,), ())), ())
    rows = RowRegion((Stage(one, 6, 2, ()), Stage(two, 6, 1, ())), ())
    return (Branch(one.arguments[0], (one, loop), (two, Halt("", (), "UNSUPPORTED")), ()), rows)


def test_every_step_is_found_and_changed(plan: Plan) -> None:
    one, two = plan.steps()
    items = nested(plan)
    assert list(walk(items)) == [one, two, one, two, one, two]
    changed = with_steps(items, lambda step: replace(step, macs=step.macs + 1))
    assert [step.macs for step in walk(changed)] == [step.macs + 1 for step in walk(items)]
    assert with_steps(changed, lambda step: replace(step, macs=step.macs - 1)) == items


def test_the_swaps_of_all_loops_are_found(plan: Plan) -> None:
    assert [swap.now for swap in swaps(nested(plan))] == ["p", "r"]


def test_arenas_add_up(plan: Plan) -> None:
    several = replace(plan, arenas=(Arena("", 100, 16, 90), Arena("fast", 50, 64, 50)))
    assert (several.arena_bytes, several.arena_bound, several.arena_align) == (150, 140, 64)
    assert several.has_pools and not plan.has_pools


def test_a_run_is_cut_between_items_and_before_states_are_brought_to_their_places(plan: Plan) -> None:
    kept = State(plan.inputs[0], plan.inputs[0].address)
    moved = replace(kept, made=Address(ARENA, 512))
    found = [replace(plan, states=states).slices for states in ((), (kept,), (moved,), (kept, moved, moved))]
    assert found == [2, 2, 3, 3]
    assert isinstance(plan.items[0], Step)
