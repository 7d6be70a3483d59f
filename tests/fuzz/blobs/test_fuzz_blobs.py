"""The fuzzer of blobs reaches runs, finds nothing in what is there, and finds what an init without checks lets in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mccompile.kinds.api import Kind
from mccompile.kinds.resize import Resize

from .programs import build, fuzz

pytestmark = pytest.mark.skipif(shutil.which("clang") is None, reason="libFuzzer comes with clang")


@pytest.mark.parametrize("name", ["trees", "conv_outside"])
def test_a_short_run_finds_nothing(name: str, tmp_path: Path) -> None:
    found = fuzz(build(name, tmp_path), ["-runs=1500"], seed=1)
    assert not found.finding
    assert found.executions >= 1500 and found.taken > 100 and found.refused > 100 and found.runs >= 2 * found.taken


def test_an_index_that_nobody_checks_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Resize, "checks", Kind.checks)
    found = fuzz(build("resized", tmp_path), ["-runs=3000"], seed=1)
    assert "AddressSanitizer" in found.finding
    assert list(tmp_path.glob("crash-*"))
