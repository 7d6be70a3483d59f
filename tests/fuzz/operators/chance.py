"""Random numbers with a seed: those of onnx's reference, which is the only one asked then."""

from __future__ import annotations

from ..builder import Builder, Value
from .registry import makes


@makes("RandomNormal", "RandomUniform")
def numbers(g: Builder, op: str) -> Value | None:
    return g.node(op, [], shape=[g.integer(1, 4), g.integer(1, 5)], seed=float(g.integer(1, 99)))


@makes("RandomNormalLike", "RandomUniformLike")
def like(g: Builder, op: str) -> Value | None:
    x = g.any(("float32",), (1, 3))
    return g.node(op, [x], seed=float(g.integer(1, 99))) if x.is_static else None


@makes("Bernoulli", opset=15)
def coins(g: Builder, op: str) -> Value | None:
    x = g.node("Sigmoid", [g.any(("float32",), (1, 3))])
    return x and g.node(op, [x], seed=float(g.integer(1, 99)))


@makes("Multinomial", opset=15)
def classes(g: Builder, op: str) -> Value | None:
    x = g.drawn("float32", (g.integer(1, 2), g.integer(1, 4)), "unit")
    return g.node(op, [x], sample_size=g.integer(1, 5), seed=float(g.integer(1, 99)))
