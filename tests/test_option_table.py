"""An option is one entry of the table: a copy of the compiler with one entry more knows it everywhere."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mccompile import option_table, option_texts
from mccompile.driver import Options

TOP = Path(__file__).resolve().parent.parent
ENTRY = '    quaint: bool = _option("Write C in the style of a century ago.", FILES, False)\n'
WHERE = "    slices: bool = "  # in front of that line
SCRIPT = """
import numpy as np
from pathlib import Path
from mccompile.base.dataclass_json import from_json, to_json
from mccompile.cli.commands import commands
from mccompile.cli.help import OPTIONS
from mccompile.driver import Options
from mccompile.python.cache import key
from mccompile.python.keywords import options_of
from mccompile.targets import api
from tests.fuzz.options import choices

for command in "compile", "check", "bench", "opt", "evidence", "quantize", "analyze", "train", "tune":
    (flag,) = [each for each in commands.commands[command].params if each.name == "quaint"]
    assert flag.opts == ["--quaint"] and flag.is_flag, command
assert "quaint" in OPTIONS[0].others
asked = options_of(None, {"quaint": True})
assert asked == Options(quaint=True) and to_json(asked) == {"quaint": True}
assert from_json(Options, to_json(asked)) == asked
target = api.load("generic")
assert key(b"", (), asked, target, "cc") != key(b"", (), Options(), target, "cc")
chance = np.random.default_rng(0)
assert {choices()["quaint"](chance, None, None) for _ in range(200)} == {None, True}
try:
    commands.main(["check", "--help-all"], standalone_mode=False)
except SystemExit:
    pass
"""


def test_an_option_is_one_entry(tmp_path: Path) -> None:
    shutil.copytree(TOP / "mccompile", tmp_path / "mccompile", ignore=shutil.ignore_patterns("__pycache__"))
    for folder in ("kernels_templates", "runtime_c", "tests", "embedded", "benchmarks"):
        (tmp_path / folder).symlink_to(TOP / folder)
    table = tmp_path / "mccompile" / "option_table.py"
    text = table.read_text(encoding="utf-8")
    assert text.count(WHERE) == 1
    table.write_text(text.replace(WHERE, ENTRY + WHERE), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "120"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Write C in the style of a century ago." in done.stdout


@pytest.mark.parametrize("option", option_table.options(Options), ids=lambda option: option.name)
def test_an_entry_is_whole(option: option_table.Option) -> None:
    entry = option.entry
    assert not entry.reads or callable(getattr(option_texts, entry.reads))
    assert not option.has_flag or (entry.help.endswith(".") and entry.group)
    assert not (entry.draws and entry.undrawn)


def test_help_needs_no_compiler() -> None:
    said = "import sys, mccompile.cli; print('numpy' in sys.modules or 'mccompile.driver' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_names_with_commas() -> None:
    """As errors write them: sizes, bounds and axes of time stand behind the last `=`, and only then comes a comma."""
    assert option_texts.dims(("a,b=1..4,c=2", "d=e=3")) == {"a,b": (1, 4), "c": (2, 2), "d=e": (3, 3)}
    assert option_texts.bounds(("y,z=9x9,n=5",)) == {"y,z": (9, 9), "n": (5,)}
    assert option_texts.stream(("left,right=2,hop=4",)).inputs == {"left,right": 2}
    assert option_texts.states(("h,1=h_in,c,1=c_in", "y,z=a,b")) == {"h,1": "h_in", "c,1": "c_in", "y,z": "a,b"}
    for text, part in (("a=1,b", "b"), ("a=1,", ""), ("a,,b=1", "a,")):
        with pytest.raises(ValueError, match=f"^{part!r} is not NAME=SIZE"):
            option_texts.dims((text,))


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (("a=b,", "c=d"), "^'' is not OUTPUT=INPUT"),
        (("a",), "^'a' is not OUTPUT=INPUT"),
        (("a=b", "a=c"), "did you mean --state a=b"),  # only one input would be kept
    ],
)
def test_states_that_are_none(texts: tuple[str, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        option_texts.states(texts)


def test_an_input_advances_along_one_axis() -> None:
    with pytest.raises(ValueError, match="'x' has one axis of time, not 1 and 2"):
        option_texts.stream(("x=1,x=2",))
