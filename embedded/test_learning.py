"""Builds that learn are right on emulated cores: what a command tells of them, and that the judge sees every call."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from mccompile.cli import run
from mccompile.targets import api
from mccompile.toolchain.emulate import run_command
from mccompile.toolchain.tools import missing
from tests.python.test_trainer import network

TARGETS = ("cortex-m0", "cortex-m4", "cortex-m55", "aarch64", "rv32imc", "wasm32")


@pytest.mark.parametrize("name", TARGETS)
def test_it_learns_what_it_should(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = api.load(name)
    if missing([target.compiler, *run_command(target)[:1]]):
        pytest.skip("needs a cross-compiler and its emulator")
    onnx.save(network(), tmp_path / "net.onnx")
    words = ["--loss", "cross_entropy:p", "--learn", "all", "--optimizer", "adam", "--accumulate", "2", "--runs", "4"]
    assert run(["check", str(tmp_path / "net.onnx"), "--target", name, *words]) == 0
    said = capsys.readouterr().out
    assert [line.split()[:2] for line in said.splitlines() if line.startswith("ok")] == [
        ["ok", kind] for kind in ("loss:", "outputs:", "gradients:", "steps:")
    ]
