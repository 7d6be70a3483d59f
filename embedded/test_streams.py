"""Samples, features and a network with states of its own in one push, on an emulated Cortex-M4."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from mccompile.driver import Options
from mccompile.measure.correctness import check
from mccompile.option_texts import stream
from mccompile.toolchain.tools import missing
from tests.passes.stream.test_own_states import STATES, WINDOW


@pytest.mark.skipif(bool(missing(["arm-none-eabi-gcc", "qemu-system-arm"])), reason="nothing emulates the board")
def test_a_network_with_states_is_right_on_its_board(tmp_path: Path) -> None:
    onnx.save(WINDOW, tmp_path / "w.onnx")
    options = Options(state=STATES, stream=stream(("x=2,hop=12",)), target="cortex-m4")
    verdict = check(tmp_path / "w.onnx", options)
    assert verdict.ok and verdict.runs[0].name == "4 pushes after 1 to warm up"
