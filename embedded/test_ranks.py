"""Estimates order the steps of int8 networks as their counted instructions do."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from benchmarks.ranks import WANTED, correlation
from embedded.models import path_of
from embedded.quantized_models import Net


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_depthwise_windows_count_beside_dense_ones(target: str, tmp_path: Path) -> None:
    assert correlation(path_of("separable_int8", tmp_path), target)[0] >= WANTED


def test_tables_count_less_than_arithmetic(tmp_path: Path) -> None:
    net = Net((1, 4, 16, 16), 1)
    net.layer("Conv", (8, 4, 1, 1), 4)
    curve = net.node("Sigmoid", [net.node("DequantizeLinear", [net.last, "step", "zero"])])
    net.last = net.node("QuantizeLinear", [curve, "step", "zero"])
    net.layer("Conv", (4, 8, 1, 1), 8)
    onnx.save(net.model("curve", (1, 4, 16, 16)), tmp_path / "curve.onnx")
    assert correlation(tmp_path / "curve.onnx", "cortex-m4")[0] >= WANTED
