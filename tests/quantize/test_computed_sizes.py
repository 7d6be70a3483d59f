"""Sizes that a run computes: the files that quantizing goes through, and the one it writes, say of them what the
model's file and the options said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

from mccompile.cli import run

W = np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32)


def model(text: str) -> ModelProto:
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    for name, array in (("w", W), ("v", W.reshape(4, 4, 1, 1))):
        if f", {name})" in text:
            made.graph.initializer.append(numpy_helper.from_array(array, name))
    return made


@pytest.mark.parametrize(
    ("text", "bounds", "r", "after"),
    [
        (
            "(float[2,4] x, int64[2] r) => (float[n,m] y) { a = MatMul(x, w) y = Tile(a, r) }",
            ["--bound", "y=4x8"],
            [2, 1],
            ["--bound", "y=4x8"],
        ),
        (
            "(float[1,4,3,3] x, int64[4] r) => (float[1,4,h,w1] y) <float[1,4,h,w1] d>"
            "{ d = Resize(x, , , r) y = Conv(d, v) }",
            ["--bound", "h=6,w1=6"],
            [1, 4, 5, 6],
            ["--bound", "d=1x4x6x6"],
        ),
        (
            "(float[1,4,3,3] x, int64[4] r) => (float[1,4,6,6] y) <float[1,4,6,6] d>"
            "{ d = Tile(x, r) y = Conv(d, v) }",
            [],
            [1, 1, 2, 2],
            [],
        ),
    ],
    ids=["bound", "numbers_beside_names", "declared"],
)  # fmt: skip
def test_sizes_are_known_in_the_quantized_file(
    text: str, bounds: list[str], r: list[int], after: list[str], tmp_path: Path
) -> None:
    path, made, data = (str(tmp_path / name) for name in ("net.onnx", "int8.onnx", "data.npz"))
    onnx.save(model(text), path)
    shape = [int(dim.dim_value) for dim in model(text).graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(2).standard_normal((8, *shape)).astype(np.float32)
    np.savez(data, x=x, r=np.array([r] * 8))
    assert run(["quantize", path, "--dynamic", "-o", made, *bounds]) == 0
    assert run(["check", made, "--data", data, "--runs", "1", *after]) == 0
    assert run(["quantize", path, "--data", data, "--calibrate", "minmax", "-o", made, *bounds]) == 0
    assert run(["check", made, "--data", data, "--runs", "1", *after]) == 0
