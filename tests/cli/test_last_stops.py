"""Streams that are closed or full, names that are not text, locales without letters: never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from mccompile import cli
from mccompile.cli import last_stops
from tests import small_models
from tests.thorough import some

NAMELESS = os.fsdecode(b"n\xfcx.onnx")  # Latin-1 in a world of UTF-8


@pytest.fixture
def conv(tmp_path: Path) -> Path:
    onnx.save(small_models.conv(), tmp_path / "conv.onnx")
    return tmp_path / "conv.onnx"


def run(command: str, **environment: str) -> tuple[int, str]:
    """Exit code and errors of a line of shell, in which $MCC is the compiler."""
    settings = {**os.environ, "MCC": f"{sys.executable} -m mccompile", **environment}
    done = subprocess.run(["bash", "-c", command], env=settings, capture_output=True, text=True, errors="replace")
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr, done.stderr
    return done.returncode, done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
def test_a_full_output_is_said(conv: Path) -> None:
    code, errors = run(f"$MCC {conv} -o {conv.parent}/out > /dev/full")
    assert code == 2 and "cannot write the output" in errors and "bug" not in errors
    assert (conv.parent / "out" / "report.json").is_file()


def _with_open(file: Path) -> None:
    """As other packages do."""
    with open(file, "wb") as opened:
        opened.write(b"some")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux")
@pytest.mark.parametrize(("folder", "fix"), [(".", "TMPDIR="), ("elsewhere", "write to another disk")])
@pytest.mark.parametrize("write", [lambda file: file.write_bytes(b"some"), _with_open])
def test_a_full_disk_is_told_by_the_file(
    write: Callable[[Path], object], folder: str, fix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))
    file = tmp_path / "written.onnx"
    file.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space") as raised:
        write(file)
    said = str(last_stops.explained(raised.value))
    assert str(file) in said and fix in said and "standard output" not in said


def test_nobody_reads_the_output() -> None:
    code, errors = run("$MCC ops | true; exit ${PIPESTATUS[0]}")
    assert (code, errors) == (141, "")


def test_a_closed_output_is_no_failure(conv: Path) -> None:
    assert run(f"$MCC {conv} -o {conv.parent}/out >&- 2>&-") == (0, "")
    assert run(f"$MCC {conv.parent}/none.onnx -o {conv.parent}/out >&- 2>&-")[0] == 4


@some(1, "name", ["ünï.onnx", NAMELESS])
def test_names_of_files_need_no_letters_of_the_locale(conv: Path, name: str) -> None:
    file = conv.with_name(name)
    file.write_bytes(conv.read_bytes())
    command = f"$MCC {conv.parent}/*n*[!v].onnx -o {conv.parent}/out && $MCC analyze {conv.parent}/*n*[!v].onnx"
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    assert run(command, **plain) == (0, "")
    (source,) = (path for path in (conv.parent / "out").glob("n*.c") if "_" not in path.stem or path.stem == "n_x")
    assert "\\udc" not in source.read_text(encoding="utf-8")


def test_the_name_of_a_model_need_not_be_text(conv: Path) -> None:
    assert cli.run([str(conv), "--name", NAMELESS, "-o", str(conv.parent / "out")]) == 0


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (MemoryError("4 GiB"), 3, "not enough memory"),
        (RecursionError("too deep"), 3, "nested too deep"),
        (PermissionError(13, "Permission denied", "/x/y"), 2, "/x/y"),
        (ValueError("surprise"), 70, "bug in mccompile"),
    ],
)
def test_what_is_from_outside_is_no_bug(
    conv: Path,
    raised: Exception,
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise raised

    monkeypatch.setattr("mccompile.driver.jobs.compile", fail)
    assert cli.run([str(conv), "-o", str(conv.parent / "out")]) == code
    assert said in capsys.readouterr().err
