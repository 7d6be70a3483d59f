"""The verifier of plans finds what a planner could get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mccompile.base.dims import symbol
from mccompile.base.errors import InternalError
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.plan.ir import BLOB, Address, Branch, Measured, Plan, Repeat, Step
from mccompile.plan.text import show
from mccompile.plan.verify import verify
from tests import small_models
from tests.small_models import compiled, model, node


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


@pytest.fixture(scope="module")
def free() -> Plan:
    """One step, then an output at an offset that depends on a size."""
    nodes = [node("Relu", "x", "r"), node("Slice", "r first last zero", "y")]
    weights = {"first": np.array([-1]), "last": np.array([1 << 40]), "zero": np.array([0])}
    made = model("free", nodes, [("x", ("time", 4))], [("y", (1, 4))], weights)
    return compile_graph(load_proto(made, dims={"time": (1, 6)}), Options(), "free").plan


def not_given(plan: Plan) -> Plan:
    return replace(plan, given=())


def not_told(plan: Plan) -> Plan:
    function = replace(plan.functions[0], sizes=())
    return replace(plan, functions=(function,))


def measured_in_one_branch(plan: Plan) -> Plan:
    step = next(plan.steps())
    measured = Measured(plan.given[0], step.arguments[0], ())
    branch = Branch(step.arguments[0], (measured,), (), ())
    return replace(plan, given=(), inputs=(), items=(branch, step))


def counted_elsewhere(plan: Plan) -> Plan:
    step = next(plan.steps())
    moved = replace(step.arguments[0], address=Address("arena", symbol("counter", 0, 3)))
    loop = Repeat("counter", 3, None, (), (step,), ())
    return replace(plan, items=(loop, replace(step, arguments=(moved, *step.arguments[1:]))))


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        (not_given, "output y names n_time"),
        (not_told, "names n_time, which it is not told"),
        (measured_in_one_branch, "names n_time, which is not known there"),
        (counted_elsewhere, "names counter, which is not known there"),
    ],
)
def test_sizes_are_known_where_they_are_named(free: Plan, damage: Callable[[Plan], Plan], complaint: str) -> None:
    verify(free)
    with pytest.raises(InternalError, match=complaint):
        verify(damage(free))


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
