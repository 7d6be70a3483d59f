"""What all importers share: who takes a model, what is missing, and that nothing is executed unasked."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import onnx.parser
import pytest
from onnx import ModelProto

import mccompile
from mccompile import cli
from mccompile.base.errors import BadFile, MccError, UnsupportedModel, WrongUse
from mccompile.importers import registry
from mccompile.importers.api import Importer, InputHints, Reading, Source

TOP = Path(__file__).resolve().parents[2]
MARK = b"made by a toy"
MODEL = """<ir_version: 10, opset_import: ["": 21]>
toy (float[batch, 3] x) => (float[batch, 3] y) { y = Relu(x) }"""


class Toy:
    """An object of another tool."""


class ToyImporter(Importer):
    what = "a toy"
    extra = "toys"
    needs = ("json",)
    suffixes = (".toy",)
    classes = (f"{__name__}.Toy",)

    def __init__(self, model: ModelProto) -> None:
        self.model, self.loaded, self.given = model, 0, list[InputHints]()

    def opens(self, source: Source) -> bool:
        return source.data.startswith(MARK)

    def risk(self, source: Source) -> str:
        return "it calls os.system" if b"risk" in source.data else ""

    def read(self, source: Source, reading: Reading) -> Any:
        self.loaded += 1
        return Toy()

    def convert(self, model: Any, given: InputHints) -> ModelProto:
        self.given.append(given)
        return self.model


@pytest.fixture
def importer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ToyImporter:
    found = ToyImporter(onnx.parser.parse_model(MODEL))
    monkeypatch.setattr(registry, "IMPORTERS", (*registry.IMPORTERS, found))
    monkeypatch.setattr(registry, "_last", {})
    return found


def toy(folder: Path, more: bytes = b"") -> Path:
    path = folder / "net.toy"
    path.write_bytes(MARK + more)
    return path


def test_every_command_takes_the_file_and_it_is_loaded_once(
    importer: ToyImporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(toy(tmp_path))
    for arguments in (["check"], ["analyze"], ["compile", "-o", str(tmp_path / "out")]):
        assert cli.run([*arguments, path, "--dim", "batch=2"]) == 0
    assert cli.run(["convert", path, "-o", str(tmp_path / "net.onnx")]) == 0
    assert ModelProto.FromString((tmp_path / "net.onnx").read_bytes()) == importer.model
    assert importer.loaded == 1 and "mccompile: error" not in capsys.readouterr().err


def test_what_would_be_executed_is_refused_without_trust(importer: ToyImporter, tmp_path: Path) -> None:
    path = toy(tmp_path, b"risk")
    with pytest.raises(WrongUse) as caught:
        mccompile.compile(path, dims={"batch": 1})
    assert str(caught.value).splitlines() == [
        "error: net.toy is not loaded: that would execute what it holds",
        f"  where  {path}",
        "  why    it is a toy",
        "         it calls os.system",
        "  fix    add trust=True if you trust those who made the file",
    ]
    assert importer.loaded == 0
    made = mccompile.compile(path, dims={"batch": 1}, trust=True)
    assert importer.loaded == 1 and "trust" not in made.report["options"]


def test_code_that_was_made_of_a_trusted_file_trusts_no_other(
    importer: ToyImporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = toy(tmp_path, b"risk")
    mccompile.compile(path, dims={"batch": 1}, trust=True).write(tmp_path / "out")
    assert cli.run(["blob", str(path), "--for", str(tmp_path / "out")]) == 2
    assert cli.run(["blob", str(path), "--for", str(tmp_path / "out"), "--trust"]) == 0


def test_a_project_file_does_not_trust_models(
    importer: ToyImporter, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    toy(tmp_path, b"risk")
    project = tmp_path / "project.toml"
    project.write_text('dim = { batch = 1 }\ntrust = true\n[[model]]\nfile = "net.toy"\n', encoding="utf-8")
    assert cli.run([str(project), "-o", str(tmp_path / "out")]) == 2
    assert "there is no key 'trust'" in capsys.readouterr().err
    project.write_text('dim = { batch = 1 }\n[[model]]\nfile = "net.toy"\n', encoding="utf-8")
    assert cli.run([str(project), "-o", str(tmp_path / "out")]) == 2
    assert cli.run([str(project), "-o", str(tmp_path / "out"), "--trust"]) == 0


def test_without_its_packages_the_extra_is_named(
    importer: ToyImporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyImporter, "needs", ("json", "toys_that_nobody_has"))
    for model in (toy(tmp_path), Toy()):
        with pytest.raises(BadFile, match="toys_that_nobody_has\n  fix    pip install toys"):
            mccompile.compile(model)


def test_objects_come_with_examples_and_free_sizes(importer: ToyImporter) -> None:
    mccompile.compile(Toy(), args=1, dynamic={"x": {0: "n"}}, dims={"batch": 1})
    mccompile.compile(Toy(), args={"x": 1}, dims={"batch": 1})
    assert importer.given == [InputHints((1,), {}, {"x": {0: "n"}}), InputHints((), {"x": 1}, {})]
    assert mccompile.load(Toy(), args=(1, 2)).input_names == ("x",)


def test_a_file_says_itself_what_its_inputs_are(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="args and dynamic go with objects"):
        mccompile.compile(tmp_path / "net.onnx", args=(1,))


def test_an_object_that_no_importer_knows_is_refused(
    importer: ToyImporter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(WrongUse, match="it is an object"):
        mccompile.compile(object())
    monkeypatch.setattr(importer, "read", lambda source, reading: object())
    with pytest.raises(UnsupportedModel, match=r"a builtins\.object is not a model that can be compiled"):
        mccompile.compile(toy(tmp_path))


def test_what_begins_otherwise_is_not_what_its_name_says(importer: ToyImporter, tmp_path: Path) -> None:
    for name in ("net.toy", "net.pt2", "net.tflite"):
        (tmp_path / name).write_bytes(b"\xff\xff\xff what nobody knows")
        with pytest.raises(BadFile, match=r"called .*, but does not begin as one"):
            mccompile.compile(tmp_path / name)


def test_only_tflite_files_have_signatures(importer: ToyImporter, tmp_path: Path) -> None:
    with pytest.raises(MccError, match="there is no signature 'serve'"):
        mccompile.compile(toy(tmp_path), signature="serve")


def test_importers_that_need_packages_have_an_extra_and_the_core_needs_none_of_them() -> None:
    project = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    core = {requirement.partition(">")[0] for requirement in project["dependencies"]}
    for importer in registry.IMPORTERS:
        assert importer.extra in project["optional-dependencies"] or not importer.needs, importer.what
        assert not core & set(importer.needs)
