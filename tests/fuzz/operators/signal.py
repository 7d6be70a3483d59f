"""Transforms of signals, and the windows that go with them."""

from __future__ import annotations

import numpy as np

from ..builder import Builder, Value
from .registry import makes


@makes("HannWindow", "HammingWindow", "BlackmanWindow", opset=17)
def shape(g: Builder, op: str) -> Value | None:
    return g.node(op, [g.constant(g.integer(2, 12))], periodic=g.integer(0, 1))


@makes("DFT", opset=20)
def transform(g: Builder, op: str) -> Value | None:
    x = g.leaf("float32", (*g.dims(1), g.integer(2, 9), g.pick([1, 2])))
    if x.shape[-1] == 1 and g.maybe(0.5):
        return g.node(op, [x, None, g.constant(1)], onesided=1)
    return g.node(op, [x, None, g.constant(1)], inverse=g.integer(0, 1))


@makes("STFT", opset=17)
def short_time(g: Builder, op: str) -> Value | None:
    frame = g.pick([4, 8])
    x: Value | None = g.input("float32", (g.integer(1, 2), frame * 3, 1))
    if g.maybe(0.5):  # frames beyond both ends, as torch.stft has them
        x = g.node("Pad", [g.input("float32", g.dims(2)), g.constant(np.array([0, frame, 0, frame]))])
    window = g.constant(np.hanning(frame).astype(np.float32))
    return x and g.node(op, [x, g.constant(g.integer(2, frame)), window, g.constant(frame)], onesided=g.integer(0, 1))


@makes("MelWeightMatrix", opset=17)
def mel(g: Builder, op: str) -> Value | None:
    ins = [g.constant(n) for n in (g.integer(3, 8), 16, 8000)]
    return g.node(op, [*ins, g.constant(100.0, "float32"), g.constant(3500.0, "float32")])
