"""The example of personal words does what its README says, with the figures that stand there."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.toolchain.tools import missing
from tests.examples.test_more_examples import EXAMPLES, MCCOMPILE, copied, run

TOLD = {
    "bytes of RAM for inference, learning and what is learned": 10_692,
    "instructions per inference": 54_640,
    "instructions per learned sample": 81_280,
    "of these right": 181,
    "power cuts that left the old weights": 900,
    "power cuts that left the new weights": 100,
}


def test_it_learns_new_words_keeps_old_ones_and_survives_power_cuts(tmp_path: Path) -> None:
    if missing(("arm-none-eabi-gcc", "qemu-system-arm", "make")):
        pytest.skip("needs a cross-compiler and its emulator")
    said = run("make", "run", MCCOMPILE, folder=copied("personal_words", tmp_path))
    told = {
        what: int(number)
        for what, _, number in (line.rpartition(": ") for line in said.splitlines())
        if number.isdecimal()
    }
    assert told["new words before, percent"] < 20
    assert told["new words after, percent"] >= 90
    assert told["old words after, percent"] >= told["old words before, percent"] - 2
    assert told["power cuts that left the old weights"] + told["power cuts that left the new weights"] == 1000
    page = (EXAMPLES / "personal_words" / "README.md").read_text(encoding="utf-8")
    for what, number in TOLD.items():
        assert told[what] == pytest.approx(number, rel=0.02), what
        assert f"{number:,}" in page, what
