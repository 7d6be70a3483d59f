"""`mccompile check --golden`: writes, compares, and says what is not as it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mccompile import cli
from tests import small_models
from tests.small_models import save


def test_written_compared_and_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", str(save(small_models.mlp(), tmp_path)), "--runs", "1", "--golden", str(tmp_path / "golden")]
    assert cli.run(command) == 0 and f"wrote  {tmp_path}/golden/mlp-generic" in capsys.readouterr().out
    assert cli.run(command) == 0 and "(stored outputs)" in capsys.readouterr().out
    assert cli.run([*command, "--prefer", "flash", "-O0"]) == 1
    said = capsys.readouterr().err
    assert "mlp.onnx does not compile to the files that it did" in said and "mlp.c" in said and "Traceback" not in said
    assert cli.run([*command, "-O0", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is False and found["golden"]["written"] is False and "changed: " in found["golden"]["changed"][0]


def test_an_update_needs_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["check", str(save(small_models.mlp(), tmp_path)), "--update-golden"]) == 2
    assert "add --golden DIR" in capsys.readouterr().err
