"""Generated C is laid out as clang-format has it with the repository's file: running it changes nothing.

Not on Cortex-M55: a template there fills structs in structs, whose lines it breaks itself.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mccompile.driver import Options
from tests.emit.c_faults import of_model
from tests.emit.test_c_faults import MODELS
from tests.small_models import compiled

STYLE = Path(__file__).parents[2] / ".clang-format"
EXPECTED = STYLE.parent / "tests" / "golden" / "expected"
TARGETS = ("generic", "cortex-m4", "x86-64-v3")
pytestmark = pytest.mark.skipif(shutil.which("clang-format") is None, reason="clang-format is not installed")


def changed(*files: Path) -> str:
    """What clang-format would change."""
    run = ["clang-format", "--dry-run", f"--style=file:{STYLE}", *map(str, files)]
    return subprocess.run(run, capture_output=True, text=True, check=True).stderr


def test_the_expected_c_stays() -> None:
    assert not changed(*EXPECTED.iterdir())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", MODELS)
def test_generated_c_stays(name: str, target: str, tmp_path: Path) -> None:
    made = MODELS[name]
    files = compiled(made, Options(target=target)).files
    paths = [tmp_path / file for file in of_model(made.graph.name)]
    for path in paths:
        path.write_bytes(files[path.name])
    assert not changed(*paths)


def test_what_is_laid_out_otherwise_is_told(tmp_path: Path) -> None:
    path = tmp_path / "other.c"
    path.write_text("void f(void) {\n  g( );\n}\n")
    assert "code should be clang-formatted" in changed(path)
