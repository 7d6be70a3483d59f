"""Golden outputs: written where they are right, compared with later, replaced when asked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

from mccompile.base.errors import CheckFailed, MccError, WrongUse
from mccompile.driver import Options
from mccompile.measure import golden
from mccompile.measure.golden import check_golden
from tests import small_models
from tests.small_models import floats, model, node, save

PLAIN = Options(target="generic")


def dense(seed: int = 0) -> ModelProto:
    return model("dense", [node("MatMul", "x w", "y")], [("x", [2, 4])], [("y", [2, 3])], {"w": floats(seed, 4, 3)})


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """Where golden outputs were written; the model lies beside."""
    path, top = save(dense(), tmp_path), tmp_path / "golden"
    found = check_golden(path, PLAIN, top, runs=2)
    assert found.written and found.ok and not found.problems and found.folder == top / "dense-generic"
    return found.folder


def again(kept: Path, options: Options = PLAIN, update: bool = False) -> golden.Golden:
    return check_golden(kept.parent.parent / "dense.onnx", options, kept.parent, update)


def test_the_second_time_it_is_compared_with_what_is_stored(kept: Path) -> None:
    found = again(kept)
    assert found.ok and not found.written
    assert [(run.name, run.reference) for run in found.verdict.runs] == [
        ("test_data_set_0", "stored outputs"),
        ("test_data_set_1", "stored outputs"),
    ]


def test_other_outputs_are_told(kept: Path) -> None:
    file = kept / "test_data_set_1" / "output_0.pb"
    other = numpy_helper.to_array(TensorProto.FromString(file.read_bytes())) + np.float32(0.5)
    file.write_bytes(numpy_helper.from_array(other).SerializeToString())
    found = again(kept)
    assert not found.ok and not found.problems
    assert "output 'y' (max abs 0.5)" in str(found.verdict.failure(Path("dense.onnx")))


def test_other_files_are_told(kept: Path) -> None:
    before = json.loads((kept / "files.json").read_text())
    before["files"] |= {"dense.c": "another", "gone.c": ""}
    del before["files"]["dense.h"]
    (kept / "files.json").write_text(json.dumps(before))
    (problem,) = again(kept).problems
    assert problem.why.splitlines() == ["changed: dense.c", "new: dense.h", "gone: gone.c"]


def test_another_model_is_told_and_taken_when_asked(kept: Path) -> None:
    save(dense(seed=1), kept.parent.parent)
    found = again(kept)
    assert not found.verdict.ok and "dense.onnx itself is another file" in found.problems[0].why
    (kept / "test_data_set_7").mkdir()
    assert again(kept, update=True).written and not (kept / "test_data_set_7").exists()
    assert again(kept).ok


def test_what_is_wrong_is_not_written(monkeypatch: pytest.MonkeyPatch, kept: Path) -> None:
    verdict = again(kept).verdict
    worse = replace(verdict.runs[0], outputs=(replace(verdict.runs[0].outputs[0], mismatches=1),))
    monkeypatch.setattr(golden, "check", lambda *_, **__: replace(verdict, runs=(worse,)))
    before = (kept / "files.json").stat().st_mtime_ns
    assert not again(kept, update=True).written and (kept / "files.json").stat().st_mtime_ns == before


def test_other_test_data_is_left_alone(kept: Path) -> None:
    (kept / "files.json").unlink()
    before = (kept / "test_data_set_0" / "output_0.pb").stat().st_mtime_ns
    with pytest.raises(WrongUse, match="folder holds other test data"):
        again(kept)
    assert (kept / "test_data_set_0" / "output_0.pb").stat().st_mtime_ns == before


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"model": "", "files": 3}'])
def test_a_list_that_is_none_is_told(text: str, kept: Path) -> None:
    (kept / "files.json").write_text(text)
    with pytest.raises(MccError, match="golden outputs cannot be read"):
        again(kept)


def test_forms_of_outputs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="--state gives others"):
        check_golden(save(small_models.mlp(), tmp_path), replace(PLAIN, state={"a": "b"}), tmp_path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "golden").write_text("a file")
    with pytest.raises(WrongUse, match="cannot write golden outputs"):
        check_golden(save(dense(), tmp_path), PLAIN, tmp_path / "golden", runs=1)


def test_in_ci_they_have_to_be_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    path, top = save(dense(), tmp_path), tmp_path / "golden"
    with pytest.raises(CheckFailed) as failed:
        check_golden(path, PLAIN, top)
    (problem,) = failed.value.problems
    assert problem.where == str(top / "dense-generic") and not top.exists()
    assert f"mccompile check {path} --target generic --golden {top}" in problem.fix
    assert check_golden(path, PLAIN, top, update=True).written
    assert not check_golden(path, PLAIN, top).written
