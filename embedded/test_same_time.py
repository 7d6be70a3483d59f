"""On cores with an FPU a run takes the same instructions whatever its input is: zeros, extremes, NaN."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto

from embedded.models import path_of
from mccompile.driver import Options, compile
from mccompile.evidence.time import counted
from mccompile.targets import api
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


def cut_off() -> ModelProto:
    """Numbers that are cut off below."""
    nodes = [node("Conv", "x w", "c"), node("Relu", "c", "r"), node("Neg", "r", "y")]
    return model("cut", nodes, [("x", [1, 2, 6, 6])], [("y", [1, 3, 4, 4])], {"w": floats(0, 3, 2, 3, 3)})


@pytest.mark.parametrize(
    ("make", "core"),
    [
        (gated, "cortex-m4"),
        (gated, "cortex-m33"),
        (gated, "cortex-m55"),
        (cut_off, "cortex-m4"),
        (cut_off, "cortex-m33"),
    ],
)
def test_a_run_takes_the_same_instructions_for_all_inputs(make: Callable[[], ModelProto], core: str) -> None:
    assert counted(compiled(make(), Options(target=core)), api.load(core), 16).varying == []


def test_steps_whose_instructions_depend_on_data_are_told() -> None:
    made = model(
        "chosen", [node("Relu", "x", "r"), node("Erf", "r", "e"), node("Neg", "e", "y")], [("x", [7])], [("y", [7])]
    )
    found = counted(compiled(made, Options(target="cortex-m4")), api.load("cortex-m4"), 14)
    assert [each.low < each.high for each in found.varying] == [True] and found.low < found.high
    assert found.varying[0].reasons == ("erf of f32",)


@pytest.mark.parametrize("core", ["cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("name", ["classifier", "integers", "quantized"])
def test_every_step_that_varies_is_named(name: str, core: str, tmp_path: Path) -> None:
    found = counted(compile(path_of(name, tmp_path), Options(target=core)), api.load(core), 12)
    assert found.varying or name == "quantized"
    assert [each for each in found.steps if each.is_missed] == []
    assert core == "cortex-m0" or name != "quantized" or not any(each.reasons for each in found.steps)
