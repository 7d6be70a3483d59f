"""Operators that take each sample, channel or region alone run for any number of them in one build."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import parser

from mccompile import backend

FOLD = "<int64[2] side = {4, 5}, int64[2] block = {2, 2}>"
CASES = {
    "Det": ("(float[n, 3, 3] x) => (float[n] y) { y = Det (x) }", {"x": ("n", 3, 3)}),
    "Det of turned matrices": (
        "(float[4, 4, n] x) => (float[n] y) { t = Transpose <perm = [2, 1, 0]> (x) y = Det (t) }",
        {"x": (4, 4, "n")},
    ),
    "Col2Im": (
        f"(float[n, 8, 6] x) => (float[n, 2, 4, 5] y) {FOLD}"
        " { y = Col2Im <strides = [2, 1], pads = [0, 0, 0, 0], dilations = [1, 2]> (x, side, block) }",
        {"x": ("n", 8, 6)},
    ),
    "Col2Im of free channels": (
        f"(float[2, n, 4, 12] x) => (float[2, n, 4, 5] y) {FOLD}"
        " { one = Constant <value_ints = [2, -1, 12]> () flat = Reshape (x, one)"
        " y = Col2Im (flat, side, block) }",
        {"x": (2, "n", 4, 12)},
    ),
    "MaxRoiPool": (
        "(float[n, m, 6, 7] x, float[r, 5] where) => (float[r, m, 2, 3] y)"
        " { y = MaxRoiPool <pooled_shape = [2, 3]> (x, where) }",
        {"x": ("n", "m", 6, 7), "where": ("r", 5)},
    ),
    "DeformConv": (
        "(float[n, 2, 5, 4] x, float[n, 8, 4, 3] moved, float[3, 2, 2, 2] w) => (float[n, 3, 4, 3] y)"
        " { y = DeformConv (x, w, moved) }",
        {"x": ("n", 2, 5, 4), "moved": ("n", 8, 4, 3), "w": (3, 2, 2, 2)},
    ),
    "GridSample": (
        "(float[n, 2, m, r] x, float[n, m, 3, 2] places) => (float[n, 2, m, 3] y)"
        ' { y = GridSample <mode = "bicubic", padding_mode = "reflection", align_corners = 1> (x, places) }',
        {"x": ("n", 2, "m", "r"), "places": ("n", "m", 3, 2)},
    ),
    "GridSample of free channels": (
        "(float[2, n, m, r] x, float[2, 3, 3, 2] places) => (float[2, n, 3, 3] y)"
        ' { y = GridSample <padding_mode = "reflection"> (x, places) }',
        {"x": (2, "n", "m", "r"), "places": (2, 3, 3, 2)},
    ),
    "MaxUnpool": (
        "(float[n, m, 4, r] x) => (float[n, m, 8, p] y)"
        " { large, i = MaxPool <kernel_shape = [3, 1], pads = [1, 0, 1, 0]> (x)"
        " y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (large, i) }",
        {"x": ("n", "m", 4, "r")},
    ),
    "CenterCropPad": (
        "(float[n, 3, m] x) => (float[2, 3, 3] y) <int64[2] size = {2, 3}>"
        " { y = CenterCropPad <axes = [0, 2]> (x, size) }",
        {"x": ("n", 3, "m")},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_one_build_takes_any_number(name: str) -> None:
    text, inputs = CASES[name]
    model = parser.parse_model(f'<ir_version: 8, opset_import: ["" : 19]> g {text}')
    session, chance = onnxruntime.InferenceSession(model.SerializeToString()), np.random.default_rng(1)
    prepared = backend.prepare(model, dims={size: (1, 4) for shape in inputs.values() for size in shape if _free(size)})
    for sizes in ({"n": 1, "m": 1, "r": 4}, {"n": 4, "m": 3, "r": 1}, {"n": 3, "m": 4, "r": 2}):
        given = {
            key: chance.standard_normal([sizes[size] if _free(size) else size for size in shape]).astype(np.float32)
            for key, shape in inputs.items()
        }
        if "where" in given:  # the last image; corners that may lie outside
            given["where"] = np.abs(given["where"] * [0, 2, 2, 4, 4] + [sizes["n"] - 1, 0, 0, 0, 0]).astype(np.float32)
        want = session.run(None, given)[0]
        got = prepared.run(list(given.values()))[0]
        np.testing.assert_allclose(got, want, 1e-5, 1e-5)


def _free(size: Any) -> bool:
    return isinstance(size, str)
