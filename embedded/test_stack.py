"""Kernels of products of bytes keep little on the stack, whose weights compilers would read in front of a loop."""

from __future__ import annotations

from pathlib import Path

import pytest

from mccompile.driver import Options
from mccompile.targets import api as targets
from tests.small_models import compiled
from tests.small_quantized import convolutions
from tests.stack import stack_bytes

LAYERS = [(32, 3, 2), (0, 3, 1), (64, 1, 1), (0, 3, 1), (24, 1, 1), (0, 3, 1), (0, 3, 2)]


@pytest.mark.parametrize(("target", "most"), [("aarch64", 832), ("aarch64-i8mm", 512)])
def test_depthwise_kernels_keep_no_weights_on_the_stack(target: str, most: int, tmp_path: Path) -> None:
    package = compiled(convolutions(24, LAYERS), Options(target=target))
    found = stack_bytes(package, targets.load(target), tmp_path / "out")
    sizes = {name: size for name, size in found.items() if "depthwise" in name}
    assert len(sizes) == 4
    assert max(sizes.values()) <= most, sizes
