"""What a command shows while it works: stages with -v, nothing with -q, and nothing where nobody watches."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

from mccompile import cli
from mccompile.base.stages import heard_by, stage
from mccompile.cli import progress
from tests import small_models


@pytest.fixture
def mlp(tmp_path: Path) -> Path:
    return small_models.save(small_models.mlp(), tmp_path)


class Terminal:
    def isatty(self) -> bool:
        return True


class Heard:
    def __init__(self) -> None:
        self.lines: list[str] = []

    def begins(self, name: str, depth: int) -> None:
        self.lines.append(f"{' ' * depth}{name}")

    def ended(self, name: str, depth: int, seconds: float) -> None:
        assert seconds >= 0
        self.lines.append(f"{' ' * depth}/{name}")


def test_stages_stand_inside_of_others_and_end_with_errors() -> None:
    heard = Heard()
    with pytest.raises(ZeroDivisionError), heard_by(heard), stage("a"), stage("b"):
        raise ZeroDivisionError
    with stage("nobody listens"):
        pass
    assert heard.lines == ["a", " b", " /b", "/a"]


def test_verbose_shows_passes_with_their_times(mlp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([str(mlp), "-o", str(tmp_path / "out"), "-v"]) == 0
    said = capsys.readouterr()
    names = re.findall(r"^ +\d+\.\d{3} s  +(\w+)$", said.err, re.MULTILINE)
    assert {"read", "fold_constants", "lower", "select_kernels", "plan_memory", "emit", "compile"} <= set(names)
    assert "arena" in said.out and " s  " not in said.out


def test_quiet_prints_errors_only(mlp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run([str(mlp), "-o", str(tmp_path / "out"), "-q"]) == 0
    said = capsys.readouterr()
    assert said.out == said.err == "" and (tmp_path / "out" / "mlp.c").is_file()
    assert cli.run([str(mlp), "-o", str(tmp_path / "out"), "-q", "--target", "nativ"]) == 2
    assert "did you mean --target native?" in capsys.readouterr().err


def test_nothing_is_shown_where_nobody_watches(
    mlp: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    assert cli.run([str(mlp), "-o", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().err == ""


def test_somebody_watches_a_terminal_but_not_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stderr", Terminal())
        half = progress.is_watched()
        patched.setattr(sys, "stdout", Terminal())
        both = progress.is_watched()
        patched.setenv("CI", "true")
        in_ci = progress.is_watched()
    assert (half, both, in_ci) == (False, True, False)


def test_without_rich_long_stages_get_a_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "is_watched", lambda: True)
    monkeypatch.setattr(progress, "find_spec", lambda name: None)
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    with progress.shown(False, False):
        with stage("short"):
            pass
        with stage("long"):
            time.sleep(0.02)
    said = capsys.readouterr()
    assert "long" in said.err and "short" not in said.err and said.out == ""


def test_the_last_line_is_gone_when_a_stage_has_ended(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("rich")
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as rich asks for in a pipe
    monkeypatch.setenv("TERM", "xterm")
    live = progress.Live()
    with heard_by(live), stage("compile"), stage("fuse"):
        time.sleep(0.3)
        assert live.live is not None
    assert live.live is None and live.names == []
    said = capsys.readouterr()
    assert "compile: fuse" in said.err and said.out == ""
