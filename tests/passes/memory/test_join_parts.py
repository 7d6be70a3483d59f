"""Operands that are made in their place in a result: what decides how the result lies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import parser

from mccompile.driver import Options, compile
from mccompile.measure.building import build
from mccompile.targets import api as targets
from tests.small_models import save


def test_the_number_that_fills_says_nothing_of_the_order_of_axes(tmp_path: Path) -> None:
    made = parser.parse_model("""<ir_version: 10, opset_import: ["" : 20]> m (float[4,6] x, float v) => (float[5,6] y)
        <int64[2] first = {0, 1}, int64[2] end = {4, 5}, int64[4] pads = {1, 0, 0, 2}> {
            part = Slice (x, first, end)
            padded = Pad (part, pads, v)
            y = Neg (padded) }""")
    x, v = np.arange(24, dtype=np.float32).reshape(4, 6), np.array(7, np.float32)
    (y,) = build(compile(save(made, tmp_path), Options()), targets.load("generic")).run({"x": x, "v": v}).values()
    assert np.array_equal(y, -np.pad(x[:, 1:5], ((1, 0), (0, 2)), constant_values=7))
