"""Exit codes stand in one place; the page on the command line has them all. Shells complete commands and options."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mccompile.base import errors
from mccompile.base.errors import Exit, MccError

TOP = Path(__file__).resolve().parent.parent.parent


def test_the_page_has_the_table_of_the_code() -> None:
    text = (TOP / "docs" / "cli.md").read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    assert re.findall(r"^\| (\d+) \| (.*) \|$", text, re.MULTILINE) == [(str(int(c)), c.meaning) for c in Exit]


def test_every_error_has_a_code_of_its_own_kind() -> None:
    found = {cls for cls in vars(errors).values() if isinstance(cls, type) and issubclass(cls, MccError)}
    codes = {cls.__name__: cls.exit_code for cls in found - {MccError}}
    assert codes == {"CheckFailed": 1, "WrongUse": 2, "UnsupportedModel": 3, "BadFile": 4}


@pytest.mark.parametrize(
    ("words", "wanted"),
    [("mccompile ch", "check"), ("mccompile check m.onnx --targ", "--target")],
    ids=["command", "option"],
)
def test_shells_complete(words: str, wanted: str) -> None:
    variables = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")), "_MCCOMPILE_COMPLETE": "bash_complete"}
    code = "import sys; sys.argv = ['mccompile']; from mccompile.cli import main; main()"
    environment = {**os.environ, **variables, "PYTHONPATH": str(TOP)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True)
    assert f"plain,{wanted}" in done.stdout.splitlines()
