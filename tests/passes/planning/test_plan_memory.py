"""plan_memory: lives, parts, sharing of functions, and what is kept apart."""

from __future__ import annotations

from mccompile.driver import Options
from mccompile.plan.ir import Plan
from tests import small_models
from tests.small_models import compiled, floats, model, node


def life(plan: Plan, name: str) -> tuple[int, int]:
    return next((life.start, life.end) for life in plan.lives if life.name == name)


def test_parts_of_a_concat_lie_inside_of_it() -> None:
    plan = compiled(small_models.branches(), Options(without=frozenset({"assign_layout"}))).plan
    places = {life.name: (life.low, life.high) for life in plan.lives}
    whole = next(name for name in places if name.startswith("joined"))
    low, high = places[whole]
    inside = [
        name for name, (a, b) in places.items() if name != whole and low <= a and b <= high and b - a < high - low
    ]
    assert len([name for name in inside if name.startswith(("left", "right"))]) == 2


def test_inputs_live_from_before_the_first_step_and_outputs_beyond_the_last() -> None:
    plan = compiled(small_models.conv(), Options(keep_inputs=True, rows="off")).plan
    steps = sum(1 for _ in plan.steps())
    assert life(plan, "x") == (0, steps + 2)
    assert life(plan, "y")[1] == steps + 2


def test_equal_calls_share_a_function_and_different_ones_do_not() -> None:
    nodes = [node("Tanh", "x", "a"), node("Tanh", "a", "b"), node("Neg", "b", "c"), node("Tanh", "c", "y")]
    made = model("chain", nodes, [("x", (4,))], [("a", (4,)), ("b", (4,)), ("c", (4,)), ("y", (4,))])
    plan = compiled(made, Options(keep_inputs=True)).plan
    assert len(list(plan.steps())) == 4
    assert len({step.function.name for step in plan.steps() if step.op == "map"}) == 2


def test_a_function_whose_arguments_overlap_is_not_shared_with_one_whose_do_not() -> None:
    nodes = [node("Tanh", "x", "a"), node("Tanh", "a", "b"), node("Neg", "b", "y")]
    made = model("chain", nodes, [("x", (4,))], [("a", (4,)), ("y", (4,))])
    plan = compiled(made, Options(without=frozenset({"fuse"}))).plan
    tanh = [step for step in plan.steps() if "tanh" in step.function.name]
    assert [bool(step.function.aliased) for step in tanh] == [True, False]  # over the input; beside an output
    assert tanh[0].function.name != tanh[1].function.name


def test_large_weights_get_a_table_for_their_checksum_where_time_comes_first() -> None:
    def asks(size: int, prefer: str) -> bool:
        made = model("sum", [node("Add", "x w", "y")], [("x", (size,))], [("y", (size,))], {"w": floats(0, size)})
        return "#define MCC_CRC_TABLE" in compiled(made, Options(prefer=prefer)).files["sum.c"].decode()

    assert [asks(1 << 14, "time"), asks(1 << 14, "ram"), asks(1 << 13, "time")] == [True, False, False]


def test_memory_without_sharing_is_more_than_with_it_and_the_bound_is_met() -> None:
    weights = {f"w{i}": floats(i, 8, 8, 3, 3) for i in range(4)}
    nodes = [node("Conv", f"t{i} w{i}", f"t{i + 1}", pads=[1, 1, 1, 1]) for i in range(4)]
    plan = compiled(model("deep", nodes, [("t0", (1, 8, 8, 8))], [("t4", (1, 8, 8, 8))], weights)).plan
    assert plan.arena_bytes == plan.arena_bound == 2 * 2048
    assert plan.arena_naive == 5 * 2048
