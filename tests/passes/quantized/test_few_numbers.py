"""Sums rescaled by two numbers of each channel, where flash comes first and kernels know how."""

from __future__ import annotations

from pathlib import Path

import pytest

from embedded.quantized_models import in_four_bits, separable_int8
from mccompile.driver import Options, compile
from tests.small_models import save


def tables(path: Path, target: str = "cortex-m4", prefer: str = "flash", **more: bool) -> list[int]:
    """Bytes of each table of two numbers."""
    plan = compile(path, Options(target=target, prefer=prefer, **more)).plan
    return [e.contents.type.max_bytes for e in plan.entries if e.packing.endswith("_short")]


@pytest.mark.parametrize(("times", "channels"), [(0, [8, 12, 12, 16, 16, 24, 32]), (16, [16, 24, 24, 32, 32, 32])])
def test_a_channel_has_8_bytes(times: int, channels: list[int], tmp_path: Path) -> None:
    """Of weights of 8 bits, whose sums are shifted, where these numbers are exact; of 4, whose sums are raised."""
    made = in_four_bits(separable_int8(), times) if times else separable_int8()
    assert sorted(tables(save(made, tmp_path)))[-len(channels) :] == [8 * count + 4 for count in channels]


@pytest.mark.parametrize(
    ("target", "prefer", "updatable"),
    [
        ("cortex-m4", "time", False),
        ("cortex-m4", "ram", False),
        ("cortex-m55", "flash", False),
        ("cortex-m0", "flash", False),
        ("cortex-m4", "flash", True),
    ],
)
def test_elsewhere_it_has_more(target: str, prefer: str, updatable: bool, tmp_path: Path) -> None:
    assert not tables(save(separable_int8(), tmp_path), target, prefer, updatable=updatable)
