"""Recurrent layers."""

from __future__ import annotations

from ..builder import Builder, Value
from .registry import makes

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@makes("RNN", "GRU", "LSTM", opset=14)
def recurrent(g: Builder, op: str) -> Value | None:
    width, hidden, batch = g.pick([1, 2, 3, 5, 8]), g.pick([1, 2, 3, 4, 8, 17]), g.integer(1, 3)
    # onnxruntime's process aborts over no steps
    steps = g.pick(g.from_one) if g.from_one and g.maybe(0.6) else g.integer(1, 5)
    dtype = g.pick(["float32", "float32", "float32", "float64"])
    x = g.input(dtype, (steps, batch, width), "normal")
    direction = g.pick(["forward", "forward", "reverse", "bidirectional"])
    both = 2 if direction == "bidirectional" else 1
    rows = GATES[op] * hidden
    ins: list[Value | None] = [x, g.drawn(dtype, (both, rows, width)), g.drawn(dtype, (both, rows, hidden))]
    ins.append(g.drawn(dtype, (both, 2 * rows)) if g.maybe(0.7) else None)
    lengths = g.maybe(0.2) and isinstance(steps, int) and dtype == "float32"  # the reference knows no lengths
    ins.append(g.index(1, int(steps), (batch,), "int32") if lengths else None)
    ins.append(g.leaf(dtype, (both, batch, hidden)) if g.maybe() else None)
    if op == "LSTM":
        ins.append(g.leaf(dtype, (both, batch, hidden)) if g.maybe() else None)
        ins.append(g.drawn(dtype, (both, 3 * hidden)) if g.maybe(0.2) else None)
    more = {"linear_before_reset": g.integer(0, 1)} if op == "GRU" else {}
    found = g.nodes_(op, ins, 3 if op == "LSTM" else 2, hidden_size=hidden, direction=direction, **more)
    return g.pick(found) if found else None
