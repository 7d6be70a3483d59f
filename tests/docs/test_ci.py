"""The workflows of docs/ci.md, as runners would run them: what they compare, and where the comment goes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests import small_models
from tests.docs.pages import TOP, blocks
from tests.small_models import save
from tests.thorough import some

PAGE = (TOP / "docs" / "ci.md").read_text(encoding="utf-8")
FILES = {block.title: block.code for block in blocks(PAGE) if block.title}
TOOLS = {"gh": "github", "curl": "gitlab"}
TIMES_SHORTLY = """
from mccompile.cli import main
from mccompile.measure import speed

speed.SECONDS = 0.02
main()
"""


def of_github() -> str:
    """The last step: the others install what is here."""
    text = dedent(FILES[".github/workflows/models.yml"].rsplit("run: |\n", 1)[1])
    assert "${{ github.base_ref }}" in text
    return text.replace("${{ github.base_ref }}", "main").replace("${{ github.event.number }}", "7")


def of_gitlab() -> str:
    """The commands that follow those which install, each of a line or folded from several; they end with pytest."""
    lines = dedent(FILES[".gitlab-ci.yml"].partition("  script:\n")[2])
    commands = [" ".join(each.removeprefix(">").split()) for each in re.split(r"^- ", lines, flags=re.MULTILINE)[1:]]
    assert commands[0].startswith("apt-get") and commands[1].startswith("pip") and commands[-1].startswith("pytest")
    return "\n".join(commands[2:-1])


def git(folder: Path, *arguments: str) -> None:
    name = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True)


def repository(folder: Path, new: bool) -> None:
    """One whose branch `main` has the model, or not."""
    git(folder, "init", "-q", "-b", "main", ".")
    tests = folder / "tests"
    tests.mkdir()
    (tests / "kws.onnx").write_bytes(save(small_models.mlp(), folder).read_bytes())
    git(folder, "add", *([] if new else ["tests"]))
    git(folder, "commit", "-q", "--allow-empty", "-m", "before")
    git(folder, "update-ref", "refs/remotes/origin/main", "HEAD")
    (folder / "model_costs.sh").write_text(FILES["model_costs.sh"])


@some(1, ("new", "fork"), [(False, False), (True, True)], ids=["changed model", "new model of a fork"])
@pytest.mark.parametrize("runner", ["github", "gitlab"])
def test_a_pull_request_gets_its_costs(runner: str, new: bool, fork: bool, tmp_path: Path) -> None:
    repository(tmp_path, new)
    script = of_github() if runner == "github" else of_gitlab()
    tools, summary = tmp_path / "bin", tmp_path / "summary.md"
    tools.mkdir()
    for tool in TOOLS:
        (tools / tool).write_text(f"#!/bin/sh\necho {tool} $* > comment.txt\nexit {int(fork)}\n")
    (tools / "mccompile").write_text(f"#!{sys.executable}\n{TIMES_SHORTLY}")
    for tool_file in tools.iterdir():
        tool_file.chmod(0o755)
    given = {"GITHUB_STEP_SUMMARY": str(summary), "CI_MERGE_REQUEST_DIFF_BASE_SHA": "main", "MODELS_TOKEN": "t"}
    environment = os.environ | given | {"PATH": f"{tools}:{os.environ['PATH']}"}
    command = ["bash", "-e", "-c", script.replace("cortex-m4", "generic")]  # so that nothing has to be installed
    done = subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True)
    told, comment = (tmp_path / "diff.md").read_text(encoding="utf-8"), (tmp_path / "comment.txt").read_text().split()
    assert "ram" in told.lower() and ("is new" in told) == new
    assert TOOLS[comment[0]] == runner and {"diff.md", "body=<diff.md"} & {*comment}
    elsewhere = done.stdout if runner == "gitlab" else summary.read_text(encoding="utf-8") if summary.exists() else ""
    assert (told in elsewhere) == fork
    assert not (tmp_path / "before").exists(), "it would be in the way of the next run"
