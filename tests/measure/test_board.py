"""A dump beside the same code and the file: the first step that a board does otherwise is named, with its elements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from mccompile import cli
from mccompile.base.errors import BadFile, CheckFailed, WrongUse
from mccompile.driver import Options, compile
from mccompile.measure import board
from mccompile.measure.board import compare_dump, first_element, runnable
from mccompile.passes.io.io_forms import InputForm
from mccompile.toolchain.run import Model
from tests import small_models
from tests.small_models import random_inputs, save
from tests.small_quantized import convolutions

DUMPING = Options(dump_values=True, name="net")


def changed(made: ModelProto, name: str, by: float) -> ModelProto:
    """The model with other weights from the middle of a tensor on."""
    copy = ModelProto()
    copy.CopyFrom(made)
    (weight,) = (each for each in copy.graph.initializer if each.name == name)
    array = numpy_helper.to_array(weight).copy()
    array.reshape(-1)[array.size // 2 :] += by
    weight.CopyFrom(numpy_helper.from_array(array, name))
    return copy


def folder_of(made: ModelProto, folder: Path, options: Options = DUMPING) -> Path:
    folder.mkdir()
    compile(save(made, folder), options).write(folder / "out")
    return folder / "out"


def dump_of(out: Path, made: ModelProto, to: Path) -> Path:
    to.write_bytes(Model.build(out, dump=True).dump(random_inputs(made)))
    return to


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """The file, its folder, and the dump of a board that is right."""
    top = tmp_path_factory.mktemp("good")
    made = small_models.conv()
    out = folder_of(made, top / "good")
    return save(made, top), out, dump_of(out, made, top / "dump.bin")


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The dump of a board whose second convolution has a wrong weight, in the same code."""
    top = tmp_path_factory.mktemp("bad")
    made = changed(small_models.conv(), "w2", 1.0)
    return dump_of(folder_of(made, top / "bad"), made, top / "dump.bin")


def test_a_board_that_is_right_is_right_on_both_sides(good: tuple[Path, Path, Path]) -> None:
    model, out, dump = good
    found = compare_dump(out, dump, model)
    assert found.ok and [line.name for line in found.lines] == ["r1", "y"]
    assert all(line.here is not None and line.here.max_abs == 0 and line.file is not None for line in found.lines)


def test_a_wrong_weight_is_located(good: tuple[Path, Path, Path], bad: Path) -> None:
    model, out, _ = good
    found = compare_dump(out, bad, model)
    assert found.first is not None and found.first is found.board
    assert (found.first.step, found.first.name, found.lines[0].ok) == (1, "y", True)
    assert "c2/Conv" in found.first.nodes and "the first is [0, 2, " in found.first.where
    assert "the board differs from the same code on this machine" in str(found.failure())


def test_without_a_compiler_the_file_tells(good: tuple[Path, Path, Path], bad: Path) -> None:
    model, out, _ = good
    found = compare_dump(out, bad, model, cc="no-such-compiler")
    assert found.board is None and found.first is not None and found.first.name == "y"
    assert "the board differs from the file" in str(found.failure())
    with pytest.raises(WrongUse, match="name the model: --model"):
        compare_dump(out, bad, None, cc="no-such-compiler")


def test_board_and_machine_may_both_differ_from_the_file(good: tuple[Path, Path, Path], tmp_path: Path) -> None:
    _, out, dump = good
    other = save(changed(small_models.conv(), "w1", 1.0), tmp_path)
    found = compare_dump(out, dump, other)
    assert found.board is None and found.first is not None and found.first.name == "r1"
    assert "board and this machine agree" in str(found.failure())


def test_a_run_that_did_not_end_is_no_good_run(good: tuple[Path, Path, Path], tmp_path: Path) -> None:
    _, out, dump = good
    (tmp_path / "cut.bin").write_bytes(dump.read_bytes()[:-20])
    found = compare_dump(out, tmp_path / "cut.bin")
    assert not found.ok and found.first is None and found.damaged == 1
    assert "did not finish" in str(found.failure())


def test_other_code_is_refused(good: tuple[Path, Path, Path], tmp_path: Path) -> None:
    other = folder_of(small_models.mlp(), tmp_path / "other")
    with pytest.raises(BadFile, match="dump comes from another build"):
        compare_dump(other, good[2])
    with pytest.raises(BadFile, match="no run of net in it"):
        compare_dump(other, Path(__file__))
    silent = folder_of(small_models.mlp(), tmp_path / "silent", Options())
    with pytest.raises(WrongUse, match="this build has no --dump-values"):
        compare_dump(silent, good[2])


def test_runs_that_part_are_told_apart(good: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A branch that the board takes and this machine does not."""
    here = board._here

    def shorter(*given: Any) -> Any:
        run = here(*given)
        assert run is not None
        run.parts.popitem()
        return run

    monkeypatch.setattr(board, "_here", shorter)
    found = compare_dump(*good[1:])
    assert found.first is not None and found.first.here is not None
    assert found.first.here.why == "the runs part here: elsewhere nothing comes now"


def test_elements_that_differ_in_one_channel_are_said_to(tmp_path: Path) -> None:
    want = np.zeros((1, 3, 2, 2), np.int8)
    got = want.copy()
    got[0, 1] = 5
    assert first_element(got, want) == "the first is [0, 1, 0, 0]: 5 instead of 0, all of them at 1 of axis 1"
    assert first_element(want, want) == ""


def test_the_command_ends_as_checks_do(
    good: tuple[Path, Path, Path], bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, dump = good
    assert cli.run(["compare", str(out), str(dump)]) == 0
    assert cli.run(["compare", str(out), str(bad), "--json"]) == CheckFailed.exit_code
    assert '"board_only": true' in capsys.readouterr().out
    assert cli.run(["compare", str(out), str(bad)]) == CheckFailed.exit_code
    assert "step 1 (c2/Conv" in capsys.readouterr().err


@pytest.mark.parametrize("rows", ["auto", "off"])
def test_an_input_that_came_in_rows_is_in_the_dump(rows: str, tmp_path: Path) -> None:
    made = small_models.conv()
    options = Options(dump_values=True, name="net", rows=rows, inputs={"x": InputForm(rows=True)})
    out = folder_of(made, tmp_path / "rows", options)
    found = compare_dump(out, dump_of(out, made, tmp_path / "dump.bin"))
    assert found.ok and "y" in [line.name for line in found.lines]


@pytest.mark.parametrize("target", ["cortex-m0", "cortex-m4"])
def test_pointers_in_scratch_are_longer_on_this_machine(target: str, tmp_path: Path) -> None:
    """Depthwise kernels keep them: the same code has no room for more than a board's."""
    made = convolutions(12, [(8, 3, 1), (0, 5, 1), (0, 7, 2)])
    inputs = {"x": np.random.default_rng(0).integers(-128, 128, (1, 1, 12, 12), np.int8)}
    wanted = Model.build(folder_of(made, tmp_path / "host", Options(name="net"))).run(inputs)
    out = folder_of(made, tmp_path / "board", Options(name="net", target=target))
    content = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert any("depthwise_indirect" in step["kernel"] for step in content["steps"])
    here, why = runnable(out, content)
    assert here is not None, why
    np.testing.assert_array_equal(here.run(inputs)["y"], wanted["y"])
