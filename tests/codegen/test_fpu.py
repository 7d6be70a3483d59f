"""Tiles of floats for the FPU of microcontrollers: of one point where flash comes first and the time is little."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from onnx import ModelProto

from mccompile.driver import Options, compile
from mccompile.measure.correctness import check
from tests.small_models import floats, model, node, save


def small_and_large(size: int) -> ModelProto:
    weights = {"w": floats(1, 8, 4, 3, 3)}
    return model("conv", [node("Conv", "x w", "y")], [("x", (1, 4, 6, size))], [("y", (1, 8, 4, size - 2))], weights)


@pytest.fixture
def target(tmp_path: Path) -> str:
    """Kernels for an FPU, for this machine."""
    path = tmp_path / "fpu.toml"
    path.write_text('inherits = "generic"\nisas = ["fpu", "c"]\n')
    return str(path)


@pytest.mark.parametrize(("prefer", "size", "points"), [("flash", 8, {"1"}), ("time", 8, {"2"}), ("flash", 400, {"2"})])
def test_tiles_have_one_point_where_bytes_count_more(
    prefer: str, size: int, points: set[str], target: str, tmp_path: Path
) -> None:
    path, options = save(small_and_large(size), tmp_path), Options(target=target, prefer=prefer, name="m")
    text = compile(path, options).files["m_kernels.c"]
    text = text if isinstance(text, str) else bytes(text).decode()
    assert set(re.findall(r"mcc_fpu_sums_(\d)x", text)) == points
    assert check(path, options, runs=1).ok


@pytest.mark.parametrize("prefer", ["time", "flash"])
def test_groups_of_several_inputs_and_one_result(prefer: str, target: str, tmp_path: Path) -> None:
    """Their lanes share no inputs, so tiles of the runs that channels make do not serve them."""
    ins, weights = [("x", (1, 20, 3, 7))], {"w": floats(1, 5, 4, 2, 1), "v": floats(2, 20, 20, 1, 1)}
    nodes = [node("Conv", "x v", "a"), node("Conv", "a w", "y", group=5)]
    path = save(model("groups", nodes, ins, [("y", (1, 5, 2, 7))], weights), tmp_path)
    assert check(path, Options(target=target, prefer=prefer), runs=1).ok
