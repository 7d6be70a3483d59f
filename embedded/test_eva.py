"""What Frama-C/Eva says of networks whose code takes it seconds: nothing. tests/evidence has the small ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from onnx import ModelProto

from embedded.models import classifier, depthwise, quantized
from embedded.quantized_models import Net
from tests.evidence.test_eva import folder_of, needs_frama_c, over_edges, raises_no_alarm


def _by_taps() -> ModelProto:
    """Int8 convolutions of each channel for itself and over all of them."""
    net = Net((1, 4, 8, 1), 7)
    net.layer("Conv", (4, 1, 3, 1), 3, group=4)
    net.layer("Conv", (4, 4, 1, 1), 4)
    return net.model("taps", (1, 4, 6, 1))


def _shares() -> ModelProto:
    """Int8 numbers as shares of their sum."""
    net = Net((1, 12), 3)
    x = net.node("DequantizeLinear", [net.last, "step", "zero"])
    net.last = net.node("QuantizeLinear", [net.node("Softmax", [x], axis=1), "step", "zero"])
    return net.model("shares", (1, 12))


@needs_frama_c
@pytest.mark.parametrize(
    ("made", "target"),
    [
        (depthwise, "generic"),
        (classifier, "generic"),
        (quantized, "cortex-m0"),
        (quantized, "cortex-m4"),
        (over_edges, "cortex-m4"),
        (_by_taps, "cortex-m0"),
        (_shares, "cortex-m0"),
    ],
)
def test_generated_code_raises_no_alarm(made: Callable[[], ModelProto], target: str, tmp_path: Path) -> None:
    assert raises_no_alarm(folder_of(made(), tmp_path, target))
