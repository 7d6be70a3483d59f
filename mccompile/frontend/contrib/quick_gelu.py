"""QuickGelu of com.microsoft: x * sigmoid(alpha * x)."""

from __future__ import annotations

from ..composed_body import Body
from ..contributed import writes


@writes("QuickGelu", "g (float[3, 8] x) => (float[3, 8] y) { y = com.microsoft.QuickGelu <alpha = 1.5> (x) }")
def quick_gelu(body: Body) -> None:
    x = body.operand(0)
    scaled = body.op("Mul", x, body.number(body.attribute("alpha", 1.702)))
    body.give(0, body.op("Mul", x, body.op("Sigmoid", scaled)))
