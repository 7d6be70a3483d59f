"""The zoo runner on a small zoo of its own; and with it, that every printed IR reads back."""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper

from mccompile.driver import Options, compile
from tests import small_models, zoo
from tests.small_models import compiled, random_inputs, reference, save
from tests.zoo_models import reads_back

DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.onnx"


def add(made: ModelProto, folder: Path, error: float = 0.0) -> None:
    data = folder / made.graph.name / "test_data_set_0"
    data.mkdir(parents=True)
    save(made, data.parent).rename(data.parent / "model.onnx")
    inputs = random_inputs(made)
    for number, array in enumerate(inputs.values()):
        (data / f"input_{number}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    for number, array in enumerate(reference(made, inputs).values()):
        wrong = (array + np.float32(error)).astype(np.float32)
        (data / f"output_{number}.pb").write_bytes(numpy_helper.from_array(wrong).SerializeToString())


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["zoo.py", *map(str, arguments)])
    monkeypatch.setattr(zoo, "opened", lambda asked: lambda: ThreadPoolExecutor(1))
    return zoo.main()


def test_passed_and_refused_are_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add(small_models.conv(), tmp_path)
    add(small_models.mlp(), tmp_path)
    strange = small_models.passthrough()
    add(strange, tmp_path)
    strange.graph.node[0].op_type = "NoSuchOperator"
    (tmp_path / "passthrough" / "model.onnx").write_bytes(strange.SerializeToString())
    assert run(monkeypatch, "--zoo", tmp_path, "--poison", "--roundtrip") == 0
    said = capsys.readouterr().out
    assert "2 passed, 1 refused, 0 wrong" in said and "unsupported operator NoSuchOperator" in said


def test_a_wrong_result_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    add(small_models.conv(), tmp_path, error=0.01)
    assert run(monkeypatch, "--zoo", tmp_path) == 1
    assert "wrong" in capsys.readouterr().out
    index = {"models": [{"name": "conv", "ort_opt_vs_noopt": {"float_max_rel_to_range": 0.1}}]}
    (tmp_path / "index.json").write_text(json.dumps(index))
    assert run(monkeypatch, "--zoo", tmp_path) == 0


def test_a_name_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, "--zoo", tmp_path) == 2
    add(small_models.conv(), tmp_path)
    assert run(monkeypatch, "--zoo", tmp_path, "--only", "nothing") == 2


@pytest.mark.parametrize("name", small_models.ALL)
def test_every_ir_of_a_small_model_reads_back(name: str, tmp_path: Path) -> None:
    compiled(small_models.ALL[name](), Options(dump=tmp_path))
    assert len(list(tmp_path.glob("*.txt"))) > 10
    assert not reads_back(tmp_path)


def test_every_ir_of_the_digits_model_reads_back(tmp_path: Path) -> None:
    compile(DIGITS, Options(dump=tmp_path))
    assert not reads_back(tmp_path)
