"""A timeline has every row of every step once, and what is copied when."""

from __future__ import annotations

import pytest

from mccompile.emit.package import Package
from mccompile.emit.timeline import timeline
from mccompile.emit.traffic import traffic, transfers
from mccompile.targets.api import Pool
from tests.passes.graph.tile_columns.test_tile_columns import package, with_weights

AWAY = Pool("away", None, 1, copied=True)
CHAIN = """(float[1,1,32,48] x, float[8,1,3,3] w, float[4,8,3,3] v, float[8,4,1,1] u) => (float[1,8,16,48] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, w)
    b = Relu(a)
    c = Conv <pads = [1, 1, 1, 1], strides = [2, 1]> (b, v)
    y = Conv (c, u)
}"""


def compiled(kib: int) -> Package:
    return package(with_weights(CHAIN, 4), mem=(Pool("near", kib << 10, 0), AWAY))


@pytest.mark.parametrize("kib", [24, 28, 32])
def test_all_of_each_step_runs_and_all_that_is_copied_is_told(kib: int) -> None:
    plan = compiled(kib).plan
    told, moved = timeline(plan), transfers(plan)["away"]
    assert told is not None
    for step in plan.steps():
        assert sum(part for number, part in told["calls"] if number == step.number) == pytest.approx(1)
    ways = {False: "read_bytes", True: "written_bytes"}
    for written, key in ways.items():
        assert sum(copy["bytes"] for copy in told["copies"] if copy["written"] == written) == moved[key]
    assert {copy["memory"] for copy in told["copies"]} == {"away"}


def test_what_comes_early_is_there_before_the_next_copy() -> None:
    plan = compiled(32).plan
    told = timeline(plan)
    assert told is not None
    early = [copy for copy in told["copies"] if copy["last"] > copy["first"]]
    assert sum(copy["bytes"] for copy in early) == transfers(plan)["away"]["overlapped_bytes"] > 0
    for before, after in zip(told["copies"], told["copies"][1:], strict=False):
        assert before["last"] < after["first"]


def test_weights_through_a_window_are_copies_too() -> None:
    plan = package(with_weights(CHAIN, 4), weights_window=2048).plan
    told, moved = timeline(plan), traffic(plan)
    assert told is not None and moved is not None
    assert sum(copy["bytes"] for copy in told["copies"]) == moved["read_bytes"]
    assert {copy["memory"] for copy in told["copies"]} == {"weights"}


def test_where_nothing_is_copied_there_is_none() -> None:
    assert timeline(package(with_weights(CHAIN, 4)).plan) is None
