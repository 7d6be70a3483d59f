"""What stands between a user and a board that is checked: each is told what to do."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mccompile.cli import run
from mccompile.cli.verdicts import as_dict, lines
from mccompile.driver import Options
from mccompile.measure.correctness import check
from tests import small_models
from tests.runtime_c.built import STRICT


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return small_models.save(small_models.mlp(), tmp_path)


def _told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    assert run(arguments) == 2
    return capsys.readouterr().err


def test_the_server_is_part_of_the_folder(model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run([str(model), "-o", str(out)]) == 0
    assert run(["serve", str(out)]) == 0
    assert run(["serve", str(out)]) == 0  # again: nothing was edited
    assert (out / "runtime" / "mcc_serve.h").is_file()
    assert (out / f"{model.stem}_serve.c").is_file()


@pytest.mark.parametrize("blob", ["array", "external"])
def test_it_compiles_without_a_warning(model: Path, tmp_path: Path, blob: str) -> None:
    out = tmp_path / "out"
    assert run([str(model), "-o", str(out), "--blob", blob]) == 0
    assert run(["serve", str(out)]) == 0
    source = [f"-I{out}", f"-I{out / 'runtime'}", "-fsyntax-only", str(out / f"{model.stem}_serve.c")]
    subprocess.run(["gcc", *STRICT, *source], check=True)


def test_a_folder_of_something_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["serve", str(tmp_path)]) != 0
    assert "is not an output folder" in capsys.readouterr().err


def test_ports_that_cannot_be_opened(
    model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as taken:  # and nobody listens
        taken.bind(("127.0.0.1", 0))
        port = f"tcp:127.0.0.1:{taken.getsockname()[1]}"
        assert f"cannot connect to {port}" in _told(["check", str(model), "--serial", port], capsys)
    assert "tcp:localhost:5000" in _told(["check", str(model), "--serial", "tcp:5000"], capsys)
    monkeypatch.setitem(sys.modules, "serial", None)
    assert "pip install pyserial" in _told(["check", str(model), "--serial", "/dev/ttyACM0"], capsys)


def test_a_board_runs_one_model(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", str(model), "--serial", "tcp:localhost:1", "--target", "generic,cortex-m4"]
    assert "a board runs one model" in _told(command, capsys)


def test_ticks_of_a_board_are_told(model: Path) -> None:
    verdict = replace(check(model, Options(), runs=1), ticks=(30, 10, 20))
    assert "board  20 ticks, the median of 3 runs" in lines(verdict)
    assert as_dict(verdict)["ticks"] == [30, 10, 20]
    assert not any(line.startswith("board") for line in lines(replace(verdict, ticks=(0, 0))))


def test_models_that_frames_do_not_carry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out = small_models.save(small_models.mlp(), tmp_path), tmp_path / "out"
    assert run([str(model), "-o", str(out), "--module", "--target", "cortex-m4"]) == 0
    capsys.readouterr()
    assert "it is a module" in _told(["serve", str(out)], capsys)


def test_what_a_board_cannot_do_alone(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    port = ["--serial", "tcp:localhost:1"]
    assert "--flash './flash.sh {}'" in _told(["tune", str(model), *port], capsys)
    assert "--flash does not go without --serial" in _told(["bench", str(model), "--flash", "flash {}"], capsys)
    assert "does not get the folder" in _told(["bench", str(model), *port, "--flash", "flash"], capsys)
    assert "--serial does not go without --measure" in _told(["analyze", str(model), *port], capsys)
    assert "a DUMP or --serial" in _told(["compare", str(tmp_path)], capsys)
    assert "it runs the one that was flashed" in _told(["bench", str(model), *port, "--target", "generic,host"], capsys)


def test_a_flash_that_fails_is_told(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flash = f"{sys.executable} -c 'print(\"no probe\"); raise SystemExit(3)' {{}}"
    assert run(["bench", str(model), "--serial", "tcp:localhost:1", "--flash", flash]) == 1
    told = capsys.readouterr().err
    assert "could not be flashed" in told and "exit code 3: no probe" in told


def test_a_folder_of_several_models(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other, out = tmp_path / "other.onnx", str(tmp_path / "out")
    other.write_bytes(model.read_bytes())
    assert run([str(model), str(other), "-o", out, "-q"]) == 0
    for command in (["serve", out], ["slots", out]):
        said = _told(command, capsys)
        assert "several models" in said and f"lists {model.stem}, other" in said and "\n  fix " in said
    assert run(["diff", out, out]) == 4
    assert "it lists several models" in capsys.readouterr().err


def test_a_results_page_needs_a_project_and_its_board(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, port = str(tmp_path / "d.npz"), ["--serial", "tcp:localhost:1"]
    assert "--results DIR" in _told(["bench", str(model), "--data", data], capsys)
    assert "--serial /dev/ttyACM0" in _told(["bench", str(model), "--results", str(tmp_path)], capsys)
    said = _told(["bench", str(model), "--results", str(tmp_path), *port], capsys)
    assert "it has no results.json" in said and "deploy --mlperf-tiny" in said
