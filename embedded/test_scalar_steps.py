"""What steps of int8 networks take on cores without SIMD, and that estimates know it."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from embedded.quantized_models import Net
from mccompile.driver import Options, pass_manager
from mccompile.measure.cost import cost
from mccompile.passes.planning.estimate import taken
from mccompile.targets.api import Prefer

COUNTED, NEAR = 1.03, (0.75, 1.3)  # times the recorded count; of estimates to counts


def dearest(net: Net, path: Path, out: tuple[int, ...], target: str) -> tuple[float, int]:
    """What a network's dearest step takes: as estimated, and counted."""
    onnx.save(net.model("net", out), path / "net.onnx")
    options = Options(target=target, prefer=Prefer.TIME)
    found, context = cost(path / "net.onnx", options, by_step=True), pass_manager(options).context
    run, count = max(zip(found.package.estimate.runs, found.by_step, strict=True), key=lambda each: each[1])
    return taken(run, context), count


@pytest.mark.parametrize(("target", "most"), [("cortex-m0", 85_000), ("cortex-m3", 64_000), ("rv32imc", 70_000)])
def test_depthwise_channels_go_from_row_to_row(target: str, most: int, tmp_path: Path) -> None:
    net = Net((1, 16, 16, 5), 1)
    net.layer("Conv", (16, 1, 3, 3), 9, False, pads=[1, 1, 1, 1], group=16)
    estimate, count = dearest(net, tmp_path, (1, 16, 16, 5), target)
    assert count <= most * COUNTED
    assert NEAR[0] <= estimate / count <= NEAR[1]


def test_one_function_makes_all_channels_of_a_position(tmp_path: Path) -> None:
    net = Net((1, 32, 8, 8), 1)
    net.layer("Conv", (32, 32, 1, 1), 32, False)
    estimate, count = dearest(net, tmp_path, (1, 32, 8, 8), "cortex-m0")
    assert count <= 203_000 * COUNTED
    assert NEAR[0] <= estimate / count <= NEAR[1]


def test_two_positions_are_rescaled_with_numbers_read_once(tmp_path: Path) -> None:
    net = Net((1, 16, 8, 8), 1)
    net.layer("Conv", (16, 16, 3, 3), 144, False, pads=[1, 1, 1, 1])
    net.layer("Conv", (64, 16, 1, 1), 16, False)
    net.classify(64)
    onnx.save(net.model("net", (1, 10)), tmp_path / "net.onnx")
    found = cost(tmp_path / "net.onnx", Options(target="rv32imc", prefer=Prefer.TIME))
    assert found.run_instructions <= 743_000 * COUNTED
