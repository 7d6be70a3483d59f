"""A mistyped command is named, not taken for a model; a file of that name still is one."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from mccompile import cli
from mccompile.cli.commands import commands


def test_a_mistyped_command_names_the_near_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["chek", "model.onnx"]) == 2
    said = capsys.readouterr().err
    assert "there is no command 'chek'" in said and "fix    did you mean check?" in said


def test_a_file_named_like_a_command_is_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("chek").write_bytes(b"")
    assert "no command" not in CliRunner().invoke(commands, ["chek", "-o", "out"]).output


def test_an_option_or_a_file_of_like_name_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--target", "generic", "no.onnx", "-o", "out"], ["bench.onx", "-o", "out"]):
        assert cli.run(words) == 4
        assert "cannot read" in capsys.readouterr().err
