"""Gradient of ai.onnx.preview.training, compiled: what C computes is the derivative."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser

from mccompile import backend
from mccompile.base.errors import MccError

HEADER = '<ir_version: 8, opset_import: ["" : 18, "ai.onnx.preview.training" : 1]>'


def model(inputs: str, results: str, y: str, body: str, xs: str) -> ModelProto:
    names = ", ".join(f'"{name}"' for name in xs.split(", "))
    made = ", ".join(f"d{name}" for name in xs.split(", "))
    gradient = f'{made} = ai.onnx.preview.training.Gradient <xs = [{names}], y = "{y}"> ({xs})'
    return parser.parse_model(f"{HEADER} g ({inputs}) => ({results}) {{ {body} {gradient} }}")


def test_a_small_network_in_c() -> None:
    """The gradients of a convolution, a pool and a loss, beside their own central differences."""
    inputs = "float[1, 2, 6, 6] x, float[3, 2, 3, 3] w, float[3] b, float[3, 2] v"
    results = "float[3, 2, 3, 3] dw, float[3] db, float[3, 2] dv"
    body = """c = Conv <strides = [2, 2], pads = [1, 1, 1, 1]> (x, w, b) a = Tanh(c) p = GlobalAveragePool(a)
        f = Flatten(p) s = MatMul(f, v) e = Exp(s) loss = ReduceSum <keepdims = 0> (e)"""
    ready = backend.prepare(model(inputs, results, "loss", body, "w, b, v"))
    chance = np.random.default_rng(3)
    x, w, b, v = (chance.normal(size=shape).astype(np.float32) for shape in ((1, 2, 6, 6), (3, 2, 3, 3), (3,), (3, 2)))
    found = ready.run([x, w, b, v])

    def loss(w: np.ndarray, b: np.ndarray, v: np.ndarray) -> float:
        padded = np.pad(x[0].astype(np.float64), ((0, 0), (1, 1), (1, 1)))
        places = [(i, j) for i in range(3) for j in range(3)]
        parts = [padded[:, i : i + 5 : 2, j : j + 5 : 2] * w[:, :, i, j, None, None] for i, j in places]
        pooled = np.tanh(sum(part.sum(1) for part in parts) + b[:, None, None]).mean((1, 2))
        return float(np.exp(pooled @ v).sum())

    operands = [array.astype(np.float64) for array in (w, b, v)]
    for number, slopes in enumerate(found):
        for place in [(0,) * slopes.ndim, tuple(n - 1 for n in slopes.shape)]:
            moved = [[array.copy() for array in operands] for _ in range(2)]
            moved[0][number][place] += 1e-6
            moved[1][number][place] -= 1e-6
            assert slopes[place] == pytest.approx((loss(*moved[0]) - loss(*moved[1])) / 2e-6, rel=1e-4, abs=1e-5)


def test_equal_gradients_are_outputs_of_their_own() -> None:
    ready = backend.prepare(model("float a, float b", "float da, float db", "c", "c = Add(a, b)", "a, b"))
    found = ready.run([np.float32(1), np.float32(2)])
    assert [float(each) for each in found] == [1, 1]


def test_another_point_is_refused() -> None:
    text = f"""{HEADER} g (float a, float b) => (float d) {{ c = Mul(a, a)
        d = ai.onnx.preview.training.Gradient <xs = ["a"], y = "c"> (b) }}"""
    with pytest.raises(MccError, match="not a"):
        backend.prepare(parser.parse_model(text))
