"""Digits by weights of three values, within the flash and RAM that its README says."""

from __future__ import annotations

import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.examples.test_more_examples import MCCOMPILE, copied, run


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="arm-none-eabi-gcc is not installed")
@pytest.mark.skipif(not shutil.which("qemu-system-arm"), reason="qemu-system-arm is not installed")
@pytest.mark.skipif(find_spec("onnxruntime") is None, reason="onnxruntime is not installed")
def test_digits_are_read_in_16_kilobytes(tmp_path: Path) -> None:
    said = run("make", "run", MCCOMPILE, folder=copied("ternary", tmp_path))
    assert "98.00% before, 98.00% after" in said
    assert int(re.search(r"^flash +(\d+)", said, re.MULTILINE)[1]) < 10_300  # type: ignore[index]
    ram = re.search(r"^ram +arena (\d+), struct (\d+), stack (\d+)", said, re.MULTILINE)
    assert ram is not None and sum(map(int, ram.groups())) < 1_100
