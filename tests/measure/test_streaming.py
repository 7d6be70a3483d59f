"""`check --stream`: pushes are compared with the window network; what is wrong is found."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from mccompile.base.errors import WrongUse
from mccompile.base.streaming import Stream, Streamed, StreamedOutput
from mccompile.driver import Options
from mccompile.frontend.load import load_proto
from mccompile.measure import streaming
from mccompile.measure.correctness import check
from mccompile.measure.runs import Runs
from mccompile.measure.windows import newest, pushes, sliding
from tests.passes.stream.pushed import floats, model

WINDOW = model(
    "(float[1,2,10] x) => (float[1,3,8] y, float[1,3,1] m) { y = Conv(x, w) m = GlobalMaxPool(y) }", w=floats(3, 2, 3)
)
PAST = Streamed({"x": 2}, 10, 2, 5, (StreamedOutput("y", 2, 6, 2, 0),))


def saved(made: ModelProto, path: Path) -> Path:
    onnx.save(made, path)
    return path


@pytest.fixture(autouse=True)
def few_pushes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "HERE", 6)


def test_right_pushes_are_one_line(tmp_path: Path) -> None:
    verdict = check(saved(WINDOW, tmp_path / "a.onnx"), Options(stream=Stream({"x": 2}, hop=2)))
    (run,) = verdict.runs
    assert verdict.ok and run.name == "6 pushes after 4 to warm up" and len(run.outputs) == 2


def test_a_state_that_is_lost_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = Runs.__call__

    def forgetting(self: Runs, inputs: object) -> object:
        self._state, self._sizes = None, None  # as after init
        return right(self, inputs)  # type: ignore[arg-type]

    monkeypatch.setattr(Runs, "__call__", forgetting)
    verdict = check(saved(WINDOW, tmp_path / "a.onnx"), Options(stream=Stream({"x": 2})))
    assert not verdict.ok and [run.name for run in verdict.runs][:2] == ["push 10", "push 11"]


def test_stored_windows_are_one_stream(tmp_path: Path) -> None:
    data = tmp_path / "test_data_set_0"
    data.mkdir()
    (data / "input_0.pb").write_bytes(onnx.numpy_helper.from_array(floats(1, 2, 10)).SerializeToString())
    path = saved(WINDOW, tmp_path / "a.onnx")
    verdict = check(path, Options(stream=Stream({"x": 2}, hop=5)), tmp_path)
    assert verdict.ok and verdict.runs[0].name == "1 pushes after 1 to warm up"


@pytest.mark.parametrize("data", [False, True])
def test_a_push_longer_than_a_window(data: bool, tmp_path: Path) -> None:
    folder = tmp_path / "test_data_set_0"
    folder.mkdir()
    (folder / "input_0.pb").write_bytes(onnx.numpy_helper.from_array(floats(1, 2, 10)).SerializeToString())
    path, options = saved(WINDOW, tmp_path / "a.onnx"), Options(stream=Stream({"x": 2}, hop=24))
    verdict = check(path, options, tmp_path if data else None)
    assert verdict.ok and verdict.runs[0].name == f"{1 if data else 6} pushes after 0 to warm up"


def test_golden_outputs_are_of_windows(tmp_path: Path) -> None:
    from mccompile.measure.golden import check_golden

    with pytest.raises(WrongUse, match="--stream gives others"):
        check_golden(saved(WINDOW, tmp_path / "a.onnx"), Options(stream=Stream({"x": 2})), tmp_path / "golden")


def test_sliding() -> None:
    """The window of a push ends with its frames, and goes on from the one before."""
    found = list(sliding(load_proto(WINDOW), PAST, 0, 7, 10, None))
    for before, push in pairwise(found):
        np.testing.assert_array_equal(push.window["x"][..., :-2], before.window["x"][..., 2:])
        np.testing.assert_array_equal(push.window["x"][..., -2:], push.frames["x"])


def test_a_window_as_pushes() -> None:
    window = {"x": np.arange(10).reshape(1, 1, 10)}
    odd = Streamed({"x": 2}, 10, 3, 4, ())
    assert [push["x"].tolist() for push in pushes(odd, window)][1:] == [[[[1, 2, 3]]], [[[4, 5, 6]]], [[[7, 8, 9]]]]
    assert newest(odd, window)["x"].tolist() == [[[7, 8, 9]]]
    long = Streamed({"x": 2}, 10, 24, 1, ())
    assert [push["x"].shape[2] for push in pushes(long, window)] == [24]


CONVOLVED = model(
    "(float[1,2,8] x) => (float[1,3,8] y, float[1,3] m)"
    "{ a = Conv<pads=[2, 1]>(x, w) y = Conv<pads=[0, 1]>(a, v) m = ReduceMean<axes=[2], keepdims=0>(y) }",
    w=floats(2, 2, 4), v=floats(3, 2, 2),
)  # fmt: skip
RECURRENT = model(
    "(float[8,1,2] x) => (float[8,1,1,3] y) { y = GRU<hidden_size=3>(x, w, r) }",
    w=floats(1, 9, 2), r=floats(1, 9, 3),
)  # fmt: skip


@pytest.mark.parametrize(("made", "axis", "before"), [(CONVOLVED, 2, 11), (RECURRENT, 0, 0)])
def test_a_window_that_goes_on(made: onnx.ModelProto, axis: int, before: int, tmp_path: Path) -> None:
    """Where the network pads, the reference has the frames that are there."""
    verdict = check(saved(made, tmp_path / "a.onnx"), Options(stream=Stream({"x": axis}, edge="warm")))
    assert verdict.ok and verdict.runs[0].name == f"6 pushes after {before} to warm up"


def test_narrow_weights(tmp_path: Path) -> None:
    options = Options(stream=Stream({"x": 2}), weights_dtype="f16")
    verdict = check(saved(WINDOW, tmp_path / "a.onnx"), options)
    assert verdict.ok and [effect.output for effect in verdict.effects] == ["y", "m"]
