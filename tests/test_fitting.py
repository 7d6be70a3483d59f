"""Budgets lead to the fastest plan that fits, and the frontier has no plan that is no better than another one."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import pytest

from mccompile.base.errors import CheckFailed, WrongUse
from mccompile.driver import Options, best_plans, compile, settled
from mccompile.fitting import told
from mccompile.targets.api import LEAST, Prefer
from tests.small_models import save
from tests.small_quantized import convolutions

TARGET = "cortex-m4"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save(convolutions(12, [(8, 3, 1), (0, 3, 1), (4, 1, 1)]), tmp_path_factory.mktemp("model"))


def arena(model: Path, **options: object) -> int:
    return compile(model, Options(target=TARGET, **options)).plan.arena_bytes  # type: ignore[arg-type]


def test_a_budget_leads_to_the_fastest_plan_that_fits(model: Path) -> None:
    fast = compile(model, Options(target=TARGET, prefer="time"))
    small = compile(model, Options(target=TARGET, budget={"ram": LEAST}))
    most, least = fast.plan.arena_bytes, small.plan.arena_bytes
    assert least < most
    assert compile(model, Options(target=TARGET, budget={"ram": most})).identity == fast.identity
    within = compile(model, Options(target=TARGET, budget={"ram": (most + least) // 2}))
    assert within.plan.arena_bytes <= (most + least) // 2
    assert fast.estimate.time <= within.estimate.time < small.estimate.time
    assert arena(model, budget={"ram": least}) == least
    with pytest.raises(CheckFailed, match=f"{least} bytes of ram are 1 over the budget"):
        arena(model, budget={"ram": least - 1})


def test_a_plan_is_found_again_without_its_budget(model: Path) -> None:
    options = Options(target=TARGET, budget={"ram": arena(model, prefer="time") - 1})
    again = settled(model, options)
    assert not again.budget
    assert compile(model, again).identity == compile(model, options).identity


def test_what_is_preferred_is_not_given_up_for_a_budget(model: Path) -> None:
    assert arena(model, prefer="ram", budget={"ram": 1 << 20}) == arena(model, prefer="ram")


def test_ram_costs_no_more_time_than_it_is_worth(model: Path) -> None:
    options = ({"prefer": "ram"}, {"prefer": "balanced"}, {"budget": {"ram": LEAST}})
    ram, balanced, least = (compile(model, Options(target=TARGET, **each)) for each in options)  # type: ignore[arg-type]
    assert least.plan.arena_bytes < ram.plan.arena_bytes <= balanced.plan.arena_bytes
    assert ram.estimate.time * ram.plan.arena_bytes**2 < least.estimate.time * least.plan.arena_bytes**2
    assert arena(model, prefer="ram", budget={"ram": least.plan.arena_bytes}) == least.plan.arena_bytes


def test_the_smallest_arena_has_one_preference(model: Path) -> None:
    with pytest.raises(WrongUse, match="ram=min does not go with --prefer time"):
        arena(model, prefer="time", budget={"ram": LEAST})


def test_weights_have_a_budget_too(model: Path) -> None:
    least = len(compile(model, Options(target=TARGET, prefer=Prefer.FLASH)).files["convolutions.mcb"])
    arena(model, budget={"weights": least})
    with pytest.raises(CheckFailed, match=f"{least} bytes of weights are 1 over the budget"):
        arena(model, budget={"weights": least - 1})


def test_the_frontier_leads_from_the_fastest_plan_to_the_smallest(model: Path) -> None:
    points = best_plans(model, Options(target=TARGET))
    for one, other in permutations(points, 2):
        assert any(a < b for a, b in zip(one.figures, other.figures, strict=True))
    assert [point.time for point in points] == sorted(point.time for point in points)
    assert min(point.ram for point in points) == arena(model, budget={"ram": LEAST})
    for point in points:
        assert arena(model, **point.changes) == point.ram


def test_the_frontier_of_two_memories_trades_fast_bytes_for_copies(model: Path) -> None:
    points = best_plans(model, Options(target=TARGET, budget={"fast": 2048}))
    found = sorted(tuple(point.copied.values()) for point in points if point.copied)
    assert len(found) == len(points) > 1 and found[0][0] < found[-1][0]
    assert found[0][1] > found[-1][1]
    smallest = min(points, key=lambda point: tuple(point.copied.values()))
    assert told(smallest.changes).startswith("--budget fast=")
