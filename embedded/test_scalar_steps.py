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

COUNTED, NEAR = 1.05, (0.75, 1.3)  # times the recorded count; of estimates to counts


@pytest.mark.parametrize(("target", "most"), [("cortex-m0", 85_000), ("cortex-m3", 64_000), ("rv32imc", 70_000)])
def test_depthwise_channels_go_from_row_to_row(target: str, most: int, tmp_path: Path) -> None:
    net = Net((1, 16, 16, 5), 1)
    net.layer("Conv", (16, 1, 3, 3), 9, False, pads=[1, 1, 1, 1], group=16)
    onnx.save(net.model("depthwise", (1, 16, 16, 5)), tmp_path / "depthwise.onnx")
    options = Options(target=target, prefer=Prefer.TIME)
    found, context = cost(tmp_path / "depthwise.onnx", options, by_step=True), pass_manager(options).context
    counts = list(zip(found.package.estimate.runs, found.by_step, strict=True))
    run, count = max(counts, key=lambda each: each[1])
    assert count <= most * COUNTED
    assert NEAR[0] <= taken(run, context) / count <= NEAR[1]
