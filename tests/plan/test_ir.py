"""What a plan and its parts say of themselves."""

from __future__ import annotations

from dataclasses import is_dataclass, replace

import pytest

from mccompile.plan import ir
from mccompile.plan.row_calls import slices_of
from tests import small_models
from tests.small_models import compiled


@pytest.fixture(scope="module")
def plan() -> ir.Plan:
    return compiled(small_models.conv()).plan


@pytest.mark.parametrize(
    ("base", "answer"), [("arena", True), ("arena_fast", True), ("arenas", False), ("a", False), (ir.BLOB, False)]
)
def test_arenas_are_known_by_name(base: str, answer: bool) -> None:
    assert ir.is_arena(base) == answer


def test_nothing_of_a_plan_can_change() -> None:
    for name, found in vars(ir).items():
        if isinstance(found, type) and found.__module__ == ir.__name__:
            assert is_dataclass(found) and found.__dataclass_params__.frozen, name


def test_a_step_touches_each_arena_from_the_first_byte_to_the_last(plan: ir.Plan) -> None:
    step = next(plan.steps())
    places = [(ir.ARENA, 64, 96), (ir.BLOB, 0, 900), (ir.ARENA, 32, 48)]
    places += [("arena_fast", 8, 16), (ir.ARENA, 200, 200), (ir.ARENA, 4, 2)]
    arguments = [replace(step.arguments[0], address=ir.Address(b, 0), low=low, high=high) for b, low, high in places]
    assert replace(step, arguments=tuple(arguments)).arena_ranges == {"arena": (32, 96), "arena_fast": (8, 16)}


def test_a_step_has_as_many_workers_as_its_widest_phase() -> None:
    assert ir.Shared(0, (((0, 4),), ((0, 1), (1, 3), (3, 4))), 0).workers == 3


def nested(plan: ir.Plan) -> tuple[ir.Item, ...]:
    one, two = plan.steps()
    swap = ir.Swap("p", "q", ir.Address(ir.ARENA, 0), ir.Address(ir.ARENA, 16), 16, ir.Address(ir.ARENA, 32), True)
    loop = ir.Repeat("k", 3, None, (swap,), (two, ir.Repeat("l", 2, None, (replace(swap, now="r"),), (one,), ())), ())
    rows = ir.RowRegion((ir.Stage(one, 6, 2, ()), ir.Stage(two, 6, 1, ())), ())
    return (ir.Branch(one.arguments[0], (one, loop), (two, ir.Halt("", (), "UNSUPPORTED")), ()), rows)


def test_every_step_is_found_and_changed(plan: ir.Plan) -> None:
    one, two = plan.steps()
    items = nested(plan)
    assert list(ir.walk(items)) == [one, two, one, two, one, two]
    changed = ir.with_steps(items, lambda step: replace(step, macs=step.macs + 1))
    assert [step.macs for step in ir.walk(changed)] == [step.macs + 1 for step in ir.walk(items)]
    assert ir.with_steps(changed, lambda step: replace(step, macs=step.macs - 1)) == items


def test_the_swaps_of_all_loops_are_found(plan: ir.Plan) -> None:
    assert [swap.now for swap in ir.swaps(nested(plan))] == ["p", "r"]


def test_arenas_add_up(plan: ir.Plan) -> None:
    several = replace(plan, arenas=(ir.Arena("", 100, 16, 90), ir.Arena("fast", 50, 64, 50)))
    assert (several.arena_bytes, several.arena_bound, several.arena_align) == (150, 140, 64)
    assert several.has_pools and not plan.has_pools


def test_a_run_is_cut_between_items_and_before_states_are_brought_to_their_places(plan: ir.Plan) -> None:
    kept = ir.State(plan.inputs[0], plan.inputs[0].address)
    moved = replace(kept, made=ir.Address(ir.ARENA, 512))
    found = [slices_of(replace(plan, states=states)) for states in ((), (kept,), (moved,), (kept, moved, moved))]
    assert found == [2, 2, 3, 3]
    assert isinstance(plan.items[0], ir.Step)
