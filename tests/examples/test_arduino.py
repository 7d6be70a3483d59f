"""The sketch for Arduino says under simavr what the same network says here, integer by integer."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import mccompile
from tests.examples.test_more_examples import EXAMPLES, MCCOMPILE, copied, run

SKETCH = EXAMPLES / "arduino"
CORE = Path("/usr/share/arduino/hardware/arduino/avr")


@pytest.mark.skipif(not shutil.which("avr-gcc"), reason="avr-gcc is not installed")
@pytest.mark.skipif(not shutil.which("simavr"), reason="simavr is not installed")
@pytest.mark.skipif(not CORE.is_dir(), reason="arduino-core-avr is not installed")
def test_a_mega_gives_the_same_integers(tmp_path: Path) -> None:
    said = run("make", "run", MCCOMPILE, folder=copied("arduino", tmp_path))
    lines = re.findall(r"((?:-?\d+ ){10}): \d in us", said)
    scores = np.array([line.split() for line in lines], np.int8)
    text = (SKETCH / "pictures.h").read_text()
    pictures = np.array([row.split(", ") for row in re.findall(r"^  \{(.*)\},$", text, re.MULTILINE)], np.uint8)
    forms = {"inputs": {"image": "u8,scale=1/16"}, "outputs": {"scores": "raw"}}
    network = mccompile.load(SKETCH / "digits.onnx", quantize=SKETCH / "samples.npz", **forms)
    expected = np.concatenate([network(picture[np.newaxis])[0] for picture in pictures])
    assert len(pictures) == 20 and scores.tolist() == expected.tolist()
    assert "20 of 20 pictures are read right" in said and "ok" in said


@pytest.mark.skipif(find_spec("platformio") is None, reason="platformio is not installed")
def test_platformio_takes_the_file(tmp_path: Path) -> None:
    home = {"PLATFORMIO_CORE_DIR": str(tmp_path / "home"), "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no"}
    command = [sys.executable, "-m", "platformio", "project", "config", "--lint", "--json-output"]
    done = subprocess.run(
        [*command, "-d", str(SKETCH)], env=os.environ | home, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    # some versions print JSON, others what Python calls it
    assert ast.literal_eval(done.stdout) == {"errors": [], "warnings": []}
