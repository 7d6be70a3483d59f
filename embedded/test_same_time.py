"""On cores with an FPU a run takes the same instructions whatever its input is: zeros, extremes, NaN."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from mccompile.driver import Options
from mccompile.targets import api as targets
from mccompile.toolchain.emulate import Emulated
from tests.small_models import compiled, floats, model, node


def gated() -> ModelProto:
    """Both kinds of gates, and functions of which libraries ask whether numbers are small, large or none."""
    weights = {"w": floats(0, 1, 12, 3), "r": floats(1, 1, 12, 4), "v": floats(2, 1, 16, 4), "q": floats(3, 1, 16, 4)}
    nodes = [
        node("GRU", "x w r", "h", hidden_size=4),
        node("Squeeze", "h axes", "s"),
        node("LSTM", "s v q", "l", hidden_size=4),
        node("Exp", "l", "e"),
        node("Tanh", "e", "t"),
        node("Log", "t", "g"),
        node("Sigmoid", "g", "y"),
    ]
    return model("gated", nodes, [("x", [5, 1, 3])], [("y", [5, 1, 1, 4])], weights | {"axes": np.int64([1])})


@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m33", "cortex-m55"])
def test_a_run_takes_the_same_instructions_for_all_inputs(core: str, tmp_path: Path) -> None:
    compiled(gated(), Options(target=core)).write(tmp_path / "out")
    program, chance = Emulated.build(tmp_path / "out", targets.load(core)), np.random.default_rng(0)
    sizes = [chance.normal(0, scale, (5, 1, 3)) for scale in (1e-30, 0.1, 1, 30)]
    filled = [np.full((5, 1, 3), number) for number in (0.0, 3.4e38, -3.4e38, np.inf, np.nan)]
    counts = {program.count({"x": np.float32(x)}).run_instructions for x in sizes + filled}
    assert len(counts) == 1
