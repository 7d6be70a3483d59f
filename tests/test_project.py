"""Project files: the same as on the command line, relative to where they are, and refused where something is wrong."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from onnx import parser

from mccompile import cli
from tests import small_models
from tests.small_models import model, node, save


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def compile(*arguments: object) -> int:
    return cli.run(["compile", *map(str, arguments)])


def project(folder: Path, text: str, name: str = "models.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.parametrize("form", ["toml", "json"])
def test_it_is_the_same_as_on_the_command_line(form: str, tmp_path: Path) -> None:
    save(small_models.conv(), tmp_path)
    save(small_models.mlp(), tmp_path)
    models = [{"file": "conv.onnx"}, {"file": "mlp.onnx"}]
    text = json.dumps({"name": "all", "prefer": "flash", "keep-inputs": True, "model": models})
    if form == "toml":
        text = 'name = "all"\nprefer = "flash"\nkeep-inputs = true\n'
        text += "".join(f'[[model]]\nfile = "{each["file"]}"\n' for each in models)
    assert compile(project(tmp_path, text, f"models.{form}"), "-o", tmp_path / "file") == 0
    line = [tmp_path / "conv.onnx", tmp_path / "mlp.onnx", "--name", "all", "--prefer", "flash", "--keep-inputs"]
    assert compile(*line, "-o", tmp_path / "line") == 0
    assert files_of(tmp_path / "file") == files_of(tmp_path / "line")


def test_each_model_has_options_of_its_own(tmp_path: Path) -> None:
    save(small_models.conv(), tmp_path)
    first = '[[model]]\nfile = "conv.onnx"\nname = "first"\n'
    text = f'package = "cmake"\n{first}{first.replace("first", "second")}io = "x=external"\n'
    assert compile(project(tmp_path, text), "-o", tmp_path / "out") == 0
    headers = {path.name: path.read_text() for path in (tmp_path / "out").rglob("*.h")}
    assert "first_input_x(" in headers["first.h"] and "second_set_input_x(" in headers["second.h"]


def test_two_shapes_of_one_model_share_the_weights(tmp_path: Path) -> None:
    nodes = [node("MatMul", "x w", "p"), node("Add", "p b", "y")]
    weights = {"w": small_models.floats(1, 4, 3), "b": small_models.floats(2, 3)}
    save(model("scores", nodes, [("x", ("n", 4))], [("y", ("n", 3))], weights), tmp_path)
    text = "\n".join(f'[[model]]\nfile = "scores.onnx"\nname = "by{n}"\nshape = {{x = [{n}, 4]}}' for n in (1, 5))
    assert compile(project(tmp_path, text), "-o", tmp_path / "out") == 0
    out = tmp_path / "out"
    assert [path.name for path in out.glob("*.mcb")] == ["by1.mcb"]
    assert [path.name for path in out.glob("*_weights.c")] == ["by1_weights.c"]
    subprocess.run(["make", "-s", "-C", str(out), "CFLAGS=-Wall -Wextra -Wpedantic -Werror"], check=True)
    for program, rows in (("by1", 1), ("by5", 5)):
        zeros = tmp_path / program
        zeros.write_bytes(bytes(16 * rows))
        done = subprocess.run([f"{out}/{program}", str(zeros)], capture_output=True, text=True, check=True)
        shown = [float(word) for word in done.stdout.split(":")[1].split()]
        assert shown == pytest.approx(list(weights["b"]) * rows, abs=1e-5)


STEP = "g (float[batch,4] x, float[1,4] h_in) => (float[batch,4] y, float[1,4] h) { y = Add(x, h_in) h = Relu(h_in) }"
PLAIN = "g (float[1,4] x) => (float[1,4] y) { y = Relu(x) }"


def steps(folder: Path) -> None:
    for name, text in (("step", STEP), ("plain", PLAIN)):
        made = parser.parse_model(f'<ir_version: 10, opset_import: ["": 21]> {text}')
        (folder / f"{name}.onnx").write_bytes(made.SerializeToString())


def test_what_the_top_says_of_tensors_is_for_the_models_that_have_them(tmp_path: Path) -> None:
    steps(tmp_path)
    text = 'name = "both"\ndim = {batch = 2}\nstate = {h = "h_in"}\nobserve = "y"\n'
    text += "".join(f'[[model]]\nfile = "{name}.onnx"\n' for name in ("step", "plain"))
    assert compile(project(tmp_path, text), "-o", tmp_path / "file") == 0
    line = ["--name", "both", "--dim", "batch=2", "--state", "h=h_in", "--observe", "y", "-o", tmp_path / "line"]
    assert compile(tmp_path / "step.onnx", tmp_path / "plain.onnx", *line) == 0
    assert files_of(tmp_path / "file") == files_of(tmp_path / "line")


@pytest.mark.parametrize("text", ['[[model]]\nfile = "plain.onnx"\nstate = {h = "h_in"}', 'state = {g = "h_in"}'])
def test_what_only_others_have_is_refused_beside_a_model_as_what_none_has(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps(tmp_path)
    text = f'{text}\n[[model]]\nfile = "step.onnx"\ndim = {{batch = 1}}\n'
    assert compile(project(tmp_path, text), "-o", tmp_path / "out") == 2
    assert "--state" in capsys.readouterr().err


WRONG = {
    'target = "generic"\n': ("names no models", "[[model]]"),
    '[[model]]\nname = "a"\n': ("a model has no file", "model 1"),
    '[[model]]\nfile = "conv.onnx"\nkeep-input = true\n': ("no key 'keep-input'", "did you mean keep-inputs?"),
    'tarjet = "generic"\n[[model]]\nfile = "conv.onnx"\n': ("there is no key 'tarjet'", "did you mean target?"),
    '[[model]]\nfile = "conv.onnx"\nrows = "sometimes"\n': (
        "an option of the project file is wrong",
        "model 1 (conv.onnx)",
    ),
    "[[model]\n": ("cannot be read", "models.toml"),
    '[[model]]\nfile = "none.onnx"\n': ("none.onnx", ""),
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_is_refused_with_its_place(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(small_models.conv(), tmp_path)
    assert compile(project(tmp_path, text), "-o", tmp_path / "out") in (2, 4)
    said = capsys.readouterr().err
    assert all(part in said for part in WRONG[text])
    assert not (tmp_path / "out").exists()


def test_options_beside_a_project_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(small_models.conv(), tmp_path)
    path = project(tmp_path, '[[model]]\nfile = "conv.onnx"\n')
    assert compile(path, "--prefer", "flash", "-o", tmp_path / "out") == 2
    assert "a project file does not go with other models or options" in capsys.readouterr().err
