"""Speed on this machine: every step has a time, in loops and in regions of rows too; figures follow from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mccompile.driver import Options
from mccompile.measure import speed as measured
from mccompile.measure.speed import speed
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import save


@pytest.mark.parametrize("options", [Options(), Options(prefer="time", threads=2), Options(prefer="ram")])
def test_every_step_has_a_time(options: Options, tmp_path: Path) -> None:
    found = speed(save(small_models.conv(), tmp_path), options)
    assert len(found.steps) == len(list(found.package.plan.steps())) > 0
    assert all(seconds > 0 for _, seconds in found.steps)
    assert found.runs[0] <= found.median and found.macs > 0 and found.peak > 0


def test_the_table_and_the_dictionary_say_the_same(tmp_path: Path) -> None:
    found = speed(save(small_models.branches(), tmp_path), Options())
    figures = json.loads(json.dumps(found.as_dict()))
    assert f"median   {figures['median_us']:.1f} us" in found.show()
    assert len(figures["steps"]) == len(found.steps) == found.show().count("\n") - 5


def test_the_peak_is_measured_once_for_all_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = speed(save(small_models.mlp(), tmp_path), Options())
    monkeypatch.setattr(measured, "run_program", lambda program: pytest.fail("it runs again"))
    assert speed(save(small_models.conv(), tmp_path), Options()).peak == first.peak


def test_a_model_of_many_runs_has_as_long_for_its_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One run is over in less than a step takes to be asked for."""
    asked: list[int] = []
    time = Model.time
    monkeypatch.setattr(Model, "time", lambda self, inputs, runs: asked.append(runs) or time(self, inputs, runs))
    assert len(speed(save(small_models.mlp(), tmp_path), Options()).runs) == asked[1] > 2 * (len(asked) - 2)
