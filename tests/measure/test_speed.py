"""Speed on this machine: every step has a time, in loops and in regions of rows too; figures follow from them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mccompile.base.dtypes import u8
from mccompile.driver import Options
from mccompile.measure import limits
from mccompile.measure.speed import speed
from mccompile.passes.io.io_forms import InputForm
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import save
from tests.thorough import some


@pytest.mark.parametrize("options", [Options(), Options(prefer="time", threads=2), Options(prefer="ram")])
def test_every_step_has_a_time(options: Options, tmp_path: Path) -> None:
    found = speed(save(small_models.conv(), tmp_path), options)
    assert len(found.steps) == len(list(found.package.plan.steps())) > 0
    assert all(seconds > 0 for _, seconds in found.steps)
    assert found.runs[0] <= found.median and found.macs > 0 and found.peak > 0


@some(
    2,
    "options",
    [
        Options(inputs={"x": InputForm(dtype=u8, scale=(1 / 255,))}),
        Options(inputs={"x": InputForm(camera="rgb", frame=(8, 6), resize="bilinear")}),
        Options(io_layout="nhwc", dims={"n": (1, 2)}),
        Options(state={"y": "x"}, dims={"n": (1, 1)}),
    ],
    ids=["bytes", "frames", "free sizes, channels last", "a state"],
)
def test_a_run_takes_what_its_program_takes(options: Options, tmp_path: Path) -> None:
    size = "n" if options.dims else 1
    node = small_models.node("Conv", "x w", "y", pads=[1, 1, 1, 1])
    weights = {"w": small_models.floats(0, 3, 3, 3, 3)}
    made = small_models.model("picture", [node], [("x", (size, 3, 4, 4))], [("y", (size, 3, 4, 4))], weights)
    assert speed(save(made, tmp_path), options).median > 0


def test_the_table_and_the_dictionary_say_the_same(tmp_path: Path) -> None:
    found = speed(save(small_models.branches(), tmp_path), Options())
    figures = json.loads(json.dumps(found.as_dict()))
    assert f"median   {figures['median_us']:.1f} us" in found.show()
    assert len(figures["steps"]) == len(found.steps) == found.show().count("\n") - 5


def test_the_peak_is_measured_once_for_all_models(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = speed(save(small_models.mlp(), tmp_path), Options())
    monkeypatch.setattr(limits, "Limits", lambda *given: pytest.fail("it runs again"))
    assert speed(save(small_models.conv(), tmp_path), Options()).peak == first.peak


def test_a_model_of_many_runs_has_as_long_for_its_steps(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One run is over in less than a step takes to be asked for."""
    asked: list[int] = []
    time = Model.time
    monkeypatch.setattr(Model, "time", lambda self, inputs, runs: asked.append(runs) or time(self, inputs, runs))
    assert len(speed(save(small_models.mlp(), tmp_path), Options()).runs) == asked[1] > 2 * (len(asked) - 2)


def test_states_that_are_full_begin_anew(tmp_path: Path) -> None:
    nodes = [small_models.node("Concat", "past x", "present", axis=0)]
    made = small_models.model("growing", nodes, [("past", ("n", 4)), ("x", (2, 4))], [("present", ("m", 4))])
    options = Options(state={"present": "past"}, dims={"n": (0, 4)})
    assert len(speed(save(made, tmp_path), options).runs) > 3
