"""Depthwise convolutions of 8-bit integers with windows of any form have a kernel on cores with DSP instructions,
with Helium, and with neither."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from tests.signal_networks import Signal
from tests.thorough import some

KERNEL = "conv/i8_nhwc_depthwise_indirect__dsp"
KERNELS = {
    **dict.fromkeys(("cortex-m4", "cortex-m7", "cortex-m33"), KERNEL),
    **dict.fromkeys(("cortex-m0", "rv32imc"), "conv/i8_nhwc_depthwise_indirect__scalar"),
    "cortex-m55": "conv/i8_nhwc_cells__helium",
}


def kernels(target: str, prefer: str, kernel: int, results: int = 1, group: int = 16, **more: int) -> set[str]:
    net = Signal(16, 60, picture=False, quantized=True)
    net.stored()
    net.conv(16, 1)
    net.conv(16 * results, kernel, group=group, **more)
    net.conv(8, 1)
    package = compile_graph(load_proto(net.model("n"), Path()), Options(target=target, prefer=prefer), "n")
    return {function.kernel.id for function in package.plan.functions}


@some(2, "target", KERNELS)
@pytest.mark.parametrize(
    "window", [{"kernel": 5}, {"kernel": 9, "dilation": 2}, {"kernel": 4, "stride": 3}, {"kernel": 3, "results": 2}]
)
def test_any_window_is_taken(target: str, window: dict[str, int]) -> None:
    assert KERNELS[target] in kernels(target, "time", **window)


@pytest.mark.parametrize("prefer", ["time", "balanced", "ram", "flash"])
def test_whatever_is_preferred(prefer: str) -> None:
    assert KERNEL in kernels("cortex-m4", prefer, 7)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m7", "cortex-m33"])
@pytest.mark.parametrize(("group", "results"), [(8, 1), (8, 2), (4, 1)])
def test_groups_of_two_and_four_channels_are_taken(target: str, group: int, results: int) -> None:
    found = kernels(target, "balanced", 5, results, group)
    assert f"conv/i8_nhwc_groups_of_{16 // group}__dsp" in found


@pytest.mark.parametrize("group", [8, 4])
def test_but_not_where_vectors_multiply_several_groups(group: int) -> None:
    found = kernels("cortex-m55", "time", 5, group=group)
    assert not [kernel for kernel in found if "groups_of" in kernel or "direct" in kernel]
