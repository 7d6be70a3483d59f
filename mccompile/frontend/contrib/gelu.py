"""Gelu and its variants of com.microsoft: ONNX's Gelu, of a sum where there is a bias."""

from __future__ import annotations

from ..composed_body import Body
from ..composed_pieces import plus
from ..contributed import writes


@writes("Gelu", "g (float[3, 8] x) => (float[3, 8] y) { y = com.microsoft.Gelu (x) }")
@writes("BiasGelu", "g (float[3, 8] x, float[8] b) => (float[3, 8] y) { y = com.microsoft.BiasGelu (x, b) }")
def gelu(body: Body) -> None:
    _write(body, "none")


@writes("FastGelu", "g (float[3, 8] x, float[8] b) => (float[3, 8] y) { y = com.microsoft.FastGelu (x, b) }")
def fast_gelu(body: Body) -> None:
    _write(body, "tanh")


def _write(body: Body, approximate: str) -> None:
    body.only()
    x = plus(body, body.operand(0), 1)
    body.give(0, body.op("Gelu", x, approximate=approximate))
