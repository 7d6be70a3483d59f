"""Errors, warnings and verdicts have colours in a terminal, and nowhere else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from mccompile import cli
from tests import small_models

pty = pytest.importorskip("pty", reason="needs a terminal")
_CODES = re.compile(r"\x1b\[[0-9;]*m")


def in_a_terminal(*arguments: str, **environment: str) -> str:
    ours, theirs = pty.openpty()
    with pytest.MonkeyPatch.context() as patch, open(theirs, "w", encoding="utf-8") as screen:
        patch.delenv("NO_COLOR", raising=False)
        for name, value in {"TERM": "xterm", "CI": "", **environment}.items():
            patch.setenv(name, value)
        with redirect_stdout(screen), redirect_stderr(screen):
            cli.run(arguments)
    said = b""
    try:
        while part := os.read(ours, 4096):
            said += part
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    return said.decode().replace("\r\n", "\n")


def test_an_error_is_red_in_a_terminal_and_its_text_the_same() -> None:
    said = in_a_terminal("no_such.onnx", "-o", "out")
    assert said.startswith("\x1b[31m\x1b[1merror:\x1b[0m ") and "  \x1b" not in said
    command = [sys.executable, "-m", "mccompile", "no_such.onnx", "-o", "out"]
    plain = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert "\x1b" not in plain and _CODES.sub("", said) == plain


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_who_wants_no_colours_gets_none(environment: dict[str, str]) -> None:
    assert "\x1b" not in in_a_terminal("no_such.onnx", "-o", "out", **environment)


def test_verdicts_are_green_and_json_is_plain(tmp_path: Path) -> None:
    file = small_models.save(small_models.mlp(), tmp_path)
    assert "\x1b[32mok\x1b[0m " in in_a_terminal("check", str(file))
    assert "\x1b" not in in_a_terminal("check", str(file), "--json").partition("{")[2]
