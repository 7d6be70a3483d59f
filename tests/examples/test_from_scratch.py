"""The example learns digits from random weights, along PyTorch's curve, with the figures of its README."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.examples.test_more_examples import EXAMPLES, MCCOMPILE, copied, run


@pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")
def test_it_learns_along_the_recorded_curve(tmp_path: Path) -> None:
    folder = copied("from_scratch", tmp_path)
    said = run("make", "run", MCCOMPILE, f"PYTHON={sys.executable}", folder=folder)
    ours, theirs = (np.loadtxt(folder / name) for name in ("build/curve.txt", "pytorch.txt"))
    assert len(ours) == len(theirs) == 600
    np.testing.assert_allclose(ours[:20], theirs[:20], rtol=1e-6)
    np.testing.assert_allclose(ours, theirs, rtol=0.05, atol=1e-3)
    before, *_, after = (int(right) for right in re.findall(r"(\d+) of 50 right", said))
    (arena,) = re.findall(r"^arena +(\d+) bytes$", said, re.MULTILINE)
    page = (EXAMPLES / "from_scratch" / "README.md").read_text(encoding="utf-8")
    assert f"| {before} of 50 and {after} of 50 |" in page
    assert f"| {int(arena):,} bytes |" in page
    drawn = (folder / "build" / "curve.svg").read_text(encoding="utf-8")
    assert drawn.count("<polyline") == 2
