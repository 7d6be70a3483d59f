"""The fixture `mccompile` as tests of other projects use it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from mccompile.base.errors import CheckFailed, WrongUse
from mccompile.python.testing import Models
from mccompile.targets import api as targets
from mccompile.toolchain.tools import missing
from tests.small_models import conv, mlp, save

THEIRS = """
def test_right(mccompile):
    mccompile.assert_matches("mlp.onnx", target="generic", ram="64K", weights="1M", runs=1)

def test_too_large(mccompile):
    mccompile.assert_matches("mlp.onnx", target="generic", ram=10, runs=1)
"""


def of(folder: Path, *arguments: str) -> str:
    """What pytest says of the tests there. Its plugin is named, for it may not be installed with the package."""
    plugin = ("-p", "no:cacheprovider", "-p", "mccompile.python.pytest_plugin")
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(folder), *plugin, str(folder), *arguments]
    top = Path(__file__).parents[2]
    environment["PYTHONPATH"] = str(top)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True).stdout


def test_a_test_fails_with_figure_and_budget(tmp_path: Path) -> None:
    save(mlp(), tmp_path)
    (tmp_path / "test_theirs.py").write_text(THEIRS)
    said = of(tmp_path, "--golden", "golden")
    assert "1 failed, 1 passed" in said
    assert re.search(r"error: \d+ bytes of ram are \d+ over the budget", said) and said.count("bytes of ram") == 2
    assert "the test allows ram 10\n" in said
    assert f"`mccompile analyze {tmp_path}/mlp.onnx --target generic`" in said
    assert (tmp_path / "golden" / "mlp-generic" / "files.json").is_file()


def test_all_that_is_wrong_is_told_at_once(tmp_path: Path) -> None:
    save(conv(), tmp_path)
    models = Models(tmp_path, tmp_path / "golden")
    models.assert_matches("conv.onnx", target="generic", runs=1)
    with pytest.raises(CheckFailed) as failed:
        models.assert_matches("conv.onnx", target="generic", optimize=False, ram=1, weights=1)
    told = [problem.what for problem in failed.value.problems]
    assert len(told) == 3 and "does not compile to the files" in told[0]
    assert "bytes of ram" in told[1] and "bytes of weights" in told[2]


def test_golden_outputs_are_written_anew_when_asked(tmp_path: Path) -> None:
    save(mlp(), tmp_path)
    for update in (False, True):
        Models(tmp_path, tmp_path / "golden", update).assert_matches("mlp.onnx", runs=1, optimize=not update)
    Models(tmp_path, tmp_path / "golden").assert_matches("mlp.onnx", optimize=False)


def test_a_wrong_keyword_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="no option 'falsh'"):
        Models(tmp_path).assert_matches("mlp.onnx", falsh="1K")


def test_figures_are_those_of_an_emulated_core(tmp_path: Path) -> None:
    target = targets.load("cortex-m4")
    if missing([target.compiler, target.run.split()[0]]):
        pytest.skip("no toolchain")
    save(mlp(), tmp_path)
    models = Models(tmp_path)
    models.assert_matches("mlp.onnx", target="cortex-m4", runs=1, flash="1M", stack="4K", instructions="10M")
    with pytest.raises(CheckFailed, match=r"instructions are \d+ over the budget(.|\n)*mccompile analyze"):
        models.assert_matches("mlp.onnx", target="cortex-m4", runs=1, instructions=10)
