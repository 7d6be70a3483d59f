"""Depthwise convolutions of 8-bit integers with windows of any form have a kernel on cores with DSP instructions,
with Helium, and with neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from tests.signal_networks import Signal

KERNEL = "conv/i8_nhwc_depthwise_indirect__dsp"
KERNELS = {
    **dict.fromkeys(("cortex-m4", "cortex-m7", "cortex-m33"), KERNEL),
    **dict.fromkeys(("cortex-m0", "rv32imc"), "conv/i8_nhwc_depthwise_indirect__scalar"),
    "cortex-m55": "conv/i8_nhwc_cells__helium",
}


def kernels(target: str, prefer: str, kernel: int, results: int = 1, **more: int) -> set[str]:
    net = Signal(16, 60, picture=False, quantized=True)
    net.stored()
    net.conv(16, 1)
    net.conv(16 * results, kernel, group=16, **more)
    net.conv(8, 1)
    package = compile_graph(load_proto(net.model("n"), Path()), Options(target=target, prefer=prefer), "n")
    return {function.kernel.id for function in package.plan.functions}


@pytest.mark.parametrize("target", KERNELS)
@pytest.mark.parametrize(
    "window", [{"kernel": 5}, {"kernel": 9, "dilation": 2}, {"kernel": 4, "stride": 3}, {"kernel": 3, "results": 2}]
)
def test_any_window_is_taken(target: str, window: dict[str, int]) -> None:
    assert KERNELS[target] in kernels(target, "time", **window)


@pytest.mark.parametrize("prefer", ["time", "balanced", "ram", "flash"])
def test_whatever_is_preferred(prefer: str) -> None:
    assert KERNEL in kernels("cortex-m4", prefer, 7)
