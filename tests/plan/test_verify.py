"""The verifier of plans finds what a planner could get wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mccompile.base.dims import symbol
from mccompile.base.dtypes import DTYPES, DType, f16, f32, f64, i8
from mccompile.base.errors import InternalError
from mccompile.base.tensor import TensorType
from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.plan.ir import ARENA, BLOB, Address, Branch, Measured, Plan, Repeat, Step, Swap
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


def complaints(plan: Plan) -> str:
    try:
        verify(plan)
    except InternalError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(("role", "size"), [("y", "arena_bytes"), ("w", "data_bytes")])
@pytest.mark.parametrize(("low", "beyond", "fits"), [(0, 0, True), (0, 1, False), (-1, 0, False)])
def test_an_argument_may_fill_its_memory(plan: Plan, role: str, size: str, low: int, beyond: int, fits: bool) -> None:
    """No other argument is in the way."""
    step = plan.items[0]
    assert isinstance(step, Step)
    end = getattr(plan, size) + beyond
    alone = replace(step, arguments=tuple(replace(a, low=low, high=end) for a in step.arguments if a.role == role))
    text = complaints(replace(plan, items=(alone,)))
    assert text == "" if fits else f"{role} touches bytes {low} to {end} of {end - beyond}" in text


def test_an_argument_does_not_end_before_it_begins(plan: Plan) -> None:
    assert "touches bytes 8 to 4" in complaints(with_argument(plan, "w", low=8, high=4))
    assert complaints(with_argument(plan, "w", low=8, high=8)) == ""


@pytest.mark.parametrize(("dtype", "offset", "aligned"), [
    (f32, 4, True), (f32, 6, False), (f64, 12, False),
    (f16, 6, True), (f16, 7, False), (i8, 7, True), (DTYPES["i4"], 7, True),
])  # fmt: skip
def test_elements_lie_at_multiples_of_their_size(plan: Plan, dtype: DType, offset: int, aligned: bool) -> None:
    moved = with_argument(plan, "w", address=Address(BLOB, offset), type=TensorType(dtype, (4,)))
    assert complaints(moved) == "" if aligned else f"w lies at {offset}, not at a multiple of" in complaints(moved)


@pytest.mark.parametrize(
    ("low", "high", "meets"), [(64, 128, False), (192, 256, False), (64, 129, True), (191, 256, True)]
)
@pytest.mark.parametrize("order", [1, -1])
def test_a_result_may_touch_an_operand(plan: Plan, low: int, high: int, meets: bool, order: int) -> None:
    step = plan.items[0]
    assert isinstance(step, Step)
    y = next(a for a in step.arguments if a.role == "y")
    x = replace(y, role="x", written=False, low=128, high=192)
    both = replace(step, arguments=(replace(y, low=low, high=high), x)[::order])
    assert ("y overlaps x" in complaints(replace(plan, items=(both,)))) == meets
    apart = replace(both, arguments=(replace(y, low=low, high=high), replace(x, address=Address(BLOB, 0))))
    assert complaints(replace(plan, items=(apart,))) == ""
    allowed = replace(both, function=replace(step.function, aliased=frozenset({"x", "y"})))
    assert complaints(replace(plan, items=(allowed,))) == ""
    half = replace(both, function=replace(step.function, aliased=frozenset({"x"})))
    assert ("y overlaps x" in complaints(replace(plan, items=(half,)))) == meets
    in_rows = replace(both, function=replace(step.function, call=replace(step.function.call, rows=2)))
    assert ("y overlaps x" in complaints(replace(plan, items=(in_rows,)))) == (meets and low >= 128)


def test_two_operands_may_be_one(plan: Plan) -> None:
    step = plan.items[0]
    assert isinstance(step, Step)
    x = next(a for a in step.arguments if a.role == "x")
    assert complaints(replace(plan, items=(replace(step, arguments=(x, replace(x, role="w"))),))) == ""


def test_memory_is_at_least_the_largest_live_set_and_at_most_its_limit(plan: Plan) -> None:
    (arena,) = plan.arenas
    exact = replace(arena, bound=arena.bytes, limit=arena.bytes)
    assert complaints(replace(plan, arenas=(exact,))) == ""
    assert "below the largest" in complaints(replace(plan, arenas=(replace(exact, bound=arena.bytes + 1),)))
    assert "may have" in complaints(replace(plan, arenas=(replace(exact, limit=arena.bytes - 1),)))


@pytest.mark.parametrize(("way", "base"), [("inputs", ARENA), ("outputs", ARENA), ("outputs", BLOB)])
def test_a_tensor_may_end_with_its_memory(plan: Plan, way: str, base: str) -> None:
    (tensor,) = getattr(plan, way)
    last = (plan.arena_bytes if base == ARENA else plan.data_bytes) - tensor.type.max_bytes
    for offset, fits in ((last, True), (last + 1, False)):
        moved = replace(plan, **{way: (replace(tensor, address=Address(base, offset)),)})
        assert ("leaves its memory" in complaints(moved)) != fits


SWAP = Swap("now", "next", Address(ARENA, 0), Address(ARENA, 64), 64, Address(ARENA, 0), True)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({}, ""),
        ({"first": Address(ARENA, 128)}, ""),
        ({"first": Address(ARENA, 127)}, "now overlaps next"),
        ({"second": Address(ARENA, 63)}, "now overlaps next"),
        ({"second": Address("elsewhere", 0)}, ""),
        ({"now": "", "next": "", "second": Address(ARENA, 0)}, ""),
        ({"first": Address(ARENA, 1152 - 64)}, ""),
        ({"first": Address(ARENA, 1152 - 63)}, "with 64 bytes at 1089 leaves the arena"),
        ({"second": Address(ARENA, 1152 - 63)}, "with 64 bytes at 1089 leaves the arena"),
        ({"last": Address(ARENA, 1152 - 63)}, "with 64 bytes at 1089 leaves the arena"),
        ({"last": Address(ARENA, -1)}, "with 64 bytes at -1 leaves the arena"),
    ],
)
def test_what_a_loop_takes_turns_with_lies_apart_in_its_memory(
    plan: Plan, changes: dict[str, Any], complaint: str
) -> None:
    assert plan.arena_bytes == 1152
    found = complaints(replace(plan, items=(Repeat("k", 2, None, (replace(SWAP, **changes),), (), ()),)))
    assert complaint in found if complaint else found == ""


@pytest.mark.parametrize(("base", "low", "high", "fits"), [
    ("now", 0, 64, True), ("now", 0, 65, False), ("next", 0, 65, False), ("now", -4, 64, False), ("now", 8, 4, False),
])  # fmt: skip
def test_what_a_loop_carries_is_as_large_as_its_memory(plan: Plan, base: str, low: int, high: int, fits: bool) -> None:
    step = plan.items[0]
    assert isinstance(step, Step)
    argument = replace(step.arguments[0], address=Address(base, 0), low=low, high=high)
    loop = Repeat("k", 2, None, (SWAP,), (replace(step, arguments=(argument,)),), ())
    assert (f"y leaves {base}" in complaints(replace(plan, items=(loop,)))) != fits


@pytest.fixture(scope="module")
def outside() -> Plan:
    return compiled(small_models.conv(), Options(external=("x",), rows="off")).plan


def test_an_input_outside_the_arena_is_not_written(outside: Plan) -> None:
    assert complaints(outside) == ""
    assert "is written but lies in an input" in complaints(with_argument(outside, "x", written=True))


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
