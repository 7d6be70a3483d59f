"""What stands in the files is for everybody: no paths of one machine, no registry hosts; modules explain themselves."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parent.parent
# Put together from pieces, so that this file does not contain what it looks for.
HOMES = "|".join(
    ("ro" + "ot", "ho" + "me/[a-z]", "Us" + "ers/[A-Za-z]", "wo" + "rk", "op" + "t/[a-z]", "mn" + "t/[a-z]")
)
MACHINE_PATH = re.compile(rf"(?<![\w./:~-])/(?:{HOMES})[\w.-]*(?=/|\b)")
REGISTRY = re.compile(
    r"(?i)--(?:extra-)?index-" + r"url|--regis" + r"try[= ]|//[a-z.-]*(?:regis" + r"try|mirr" + r"or)[a-z.-]*/"
)


def tracked_files() -> list[Path]:
    git = ["git", "-c", "safe.directory=*", "-C", str(TOP), "ls-files", "-z"]
    listed = subprocess.run(git, check=True, capture_output=True, text=True).stdout
    return [TOP / name for name in listed.split("\0") if name and (TOP / name).is_file()]


def texts() -> list[tuple[Path, str]]:
    found = []
    for path in tracked_files():
        data = path.read_bytes()
        if b"\0" not in data[:8192]:
            found.append((path, data.decode("utf-8")))
    return found


@pytest.mark.skipif(not (TOP / ".git").exists(), reason="not a checkout: git cannot say which files belong to it")
@pytest.mark.parametrize("pattern", [MACHINE_PATH, REGISTRY], ids=["paths of a machine", "registry hosts"])
def test_tracked_files_are_free_of(pattern: re.Pattern[str]) -> None:
    hits = [
        f"{path.relative_to(TOP)}:{text.count(chr(10), 0, hit.start()) + 1}: {hit.group()}"
        for path, text in texts()
        for hit in pattern.finditer(text)
    ]
    assert not hits, "\n".join(hits)


def test_the_patterns_see_what_they_are_for() -> None:
    slash = "/"
    assert MACHINE_PATH.search(f"model = '{slash}wo{'rk'}/models/a.onnx'")
    assert MACHINE_PATH.search(f"cd {slash}ho{'me'}/anna/project")
    assert REGISTRY.search(f"pip install --index-{'url'} x")
    assert not MACHINE_PATH.search(f"out{slash}wo{'rk'}/a.c, backbone.4{slash}wo{'rk'}")
    assert not MACHINE_PATH.search(f"example.org{slash}ho{'me'}/page")


@pytest.mark.parametrize("path", sorted((TOP / "mccompile").rglob("*.py")), ids=lambda path: str(path.relative_to(TOP)))
def test_a_module_says_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
