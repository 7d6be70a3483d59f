"""The verifier of plans finds what a planner could get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from mccompile.base.errors import InternalError
from mccompile.plan.ir import BLOB, Plan, Step
from mccompile.plan.text import show
from mccompile.plan.verify import verify
from tests import small_models
from tests.small_models import compiled


@pytest.fixture(scope="module")
def plan() -> Plan:
    return compiled(small_models.conv()).plan


def with_argument(plan: Plan, role: str, **changes: Any) -> Plan:
    """The plan with one argument of its first step changed."""
    step = plan.items[0]
    assert isinstance(step, Step)
    arguments = tuple(replace(a, **changes) if a.role == role else a for a in step.arguments)
    return replace(plan, items=(replace(step, arguments=arguments), *plan.items[1:]))


def beyond_the_arena(plan: Plan) -> Plan:
    return with_argument(plan, "y", high=plan.arena_bytes + 1)


def before_its_start(plan: Plan) -> Plan:
    return with_argument(plan, "y", low=-4)


def unaligned(plan: Plan) -> Plan:
    step = plan.items[0]
    assert isinstance(step, Step)
    return with_argument(plan, "y", address=replace(step.arguments[0].address, offset=2))


def written_blob(plan: Plan) -> Plan:
    return with_argument(plan, "w", written=True)


def overlapping(plan: Plan) -> Plan:
    step = plan.items[0]
    assert isinstance(step, Step)
    x = next(a for a in step.arguments if a.role == "x")
    return with_argument(plan, "y", address=x.address, low=x.low, high=x.high)


def output_outside(plan: Plan) -> Plan:
    output = plan.outputs[0]
    moved = replace(output, address=replace(output.address, offset=plan.arena_bytes))
    return replace(plan, outputs=(moved,))


def below_the_bound(plan: Plan) -> Plan:
    return replace(plan, arenas=(replace(plan.arenas[0], bound=plan.arena_bytes + 1),))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (beyond_the_arena, "touches bytes"),
        (before_its_start, "touches bytes"),
        (unaligned, "not at a multiple of 4"),
        (written_blob, "lies in the blob"),
        (overlapping, "overlaps x"),
        (output_outside, "leaves its memory"),
        (below_the_bound, "below the largest live set"),
    ],
)
def test_damage_is_found(plan: Plan, damage: Callable[[Plan], Plan], complaint: str) -> None:
    verify(plan)
    with pytest.raises(InternalError, match=complaint):
        verify(damage(plan))


def test_the_text_names_everything(plan: Plan) -> None:
    text = show(plan)
    for name in (
        "input 'x'",
        "output 'y'",
        "const w1",
        "function conv_conv_3x3s1",
        "c1/Conv",
        f"arena {plan.arena_bytes}",
    ):
        assert name in text


def test_every_constant_lies_apart_and_aligned(plan: Plan) -> None:
    ends = 0
    for entry in plan.entries:
        assert entry.offset % 64 == 0 and entry.offset >= ends
        ends = entry.offset + entry.contents.type.max_bytes
    assert ends <= plan.data_bytes
    assert not [a for step in plan.steps() for a in step.arguments if a.address.base == BLOB and a.written]
