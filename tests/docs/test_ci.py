"""The step of docs/ci.md's workflow that compares costs, as a runner would call it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from tests import small_models
from tests.small_models import save

PAGE = Path(__file__).resolve().parents[2] / "docs" / "ci.md"


def script() -> str:
    """For this machine, so that nothing has to be installed."""
    block = PAGE.read_text(encoding="utf-8").split("```yaml", 1)[1].split("\n```\n", 1)[0]
    text = dedent(block.rsplit("run: |\n", 1)[1])
    assert "${{ github.base_ref }}" in text
    text = text.replace("${{ github.base_ref }}", "main").replace("${{ github.event.number }}", "7")
    return text.replace("--target cortex-m4", "--target generic")


def git(folder: Path, *arguments: str) -> None:
    name = ["-c", "user.name=t", "-c", "user.email=t@localhost"]
    subprocess.run(["git", *name, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize(("new", "fork"), [(False, False), (True, True)], ids=["changed model", "new model of a fork"])
def test_a_pull_request_gets_its_costs(tmp_path: Path, new: bool, fork: bool) -> None:
    git(tmp_path, "init", "-q", "-b", "main", ".")
    tests = tmp_path / "tests"
    tests.mkdir()
    model = save(small_models.mlp(), tmp_path)
    (tests / "kws.onnx").write_bytes(model.read_bytes())
    git(tmp_path, "add", *([] if new else ["tests"]))
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "before")
    git(tmp_path, "update-ref", "refs/remotes/origin/main", "HEAD")
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "gh").write_text(f"#!/bin/sh\necho $* > comment.txt\nexit {int(fork)}\n")
    (tools / "mccompile").write_text(f'#!/bin/sh\nexec {sys.executable} -m mccompile "$@"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    summary = tmp_path / "summary.md"
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(summary)}
    subprocess.run(["bash", "-e", "-c", script()], cwd=tmp_path, env=environment, check=True, capture_output=True)
    told = (tmp_path / "diff.md").read_text(encoding="utf-8")
    assert "ram" in told.lower() and ("is new" in told) == new
    assert (tmp_path / "comment.txt").read_text().split() == ["pr", "comment", "7", "--body-file", "diff.md"]
    assert (summary.read_text(encoding="utf-8") if fork else told) == told and summary.exists() == fork
