"""bench and analyze take several targets, and project files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mccompile import cli
from mccompile.cli import bench
from mccompile.cli.jobs import is_project
from tests import small_models


class Figures:
    def __init__(self, model: Path, target: str) -> None:
        self.model, self.target = model, target

    def as_dict(self) -> dict[str, str]:
        return {"model": self.model.stem, "target": self.target}

    def show(self) -> str:
        return f"{self.model.stem} on {self.target}"


@pytest.fixture
def mlp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(bench, "figures_of", lambda model, options, *how: Figures(model, options.target))
    return small_models.save(small_models.mlp(), tmp_path)


@pytest.fixture
def project(mlp: Path) -> Path:
    path = mlp.with_name("all.toml")
    path.write_text('target = "cortex-m4"\n[[model]]\nfile = "mlp.onnx"\n[[model]]\nfile = "mlp.onnx"\nname = "two"\n')
    return path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> str:
    assert cli.run([str(argument) for argument in arguments]) == 0
    return capsys.readouterr().out


def test_json_of_another_tool_is_no_project(tmp_path: Path) -> None:
    tree, project = tmp_path / "tree.json", tmp_path / "project.json"
    tree.write_text('{"name": "tree", "version": "v4"}', encoding="utf-8")
    project.write_text('{"model": [{"file": "a.onnx"}]}', encoding="utf-8")
    assert not is_project(tree)
    assert is_project(project) and is_project(tmp_path / "missing.json")


def test_bench_of_several_targets(mlp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "bench", mlp, "--target", "native,cortex-m4") == "mlp on native\n\nmlp on cortex-m4\n"
    found = json.loads(printed(capsys, "bench", mlp, "--target", "native,cortex-m4", "--json"))
    assert [each["target"] for each in found["models"]] == ["native", "cortex-m4"]
    one = json.loads(printed(capsys, "bench", mlp, "--json"))
    assert one == {"schema": "mccompile/bench/1", "model": "mlp", "target": "generic"}


def test_bench_of_a_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "bench", project).count("mlp on cortex-m4") == 2


def test_analyze_of_a_project(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "analyze", project, "--json"))
    assert [each["model"] for each in found["models"]] == ["mlp", "two"]


def test_analyze_of_several_targets(mlp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "analyze", mlp, "--target", "generic,cortex-m4").count("arena    ") == 2


def test_a_page_shows_one_model(project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["analyze", str(project), "--html", str(tmp_path / "page.html")]) == 2
    assert "leave out --html" in capsys.readouterr().err and not (tmp_path / "page.html").exists()
