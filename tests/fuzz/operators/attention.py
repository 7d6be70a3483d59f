"""ONNX's own attention, and what stands around it in language models."""

from __future__ import annotations

from typing import Any

from ..builder import Builder, Value
from .registry import makes


@makes("Attention", opset=23)
def attention(g: Builder, op: str) -> Value | None:
    """With heads that share keys, in three or four dimensions, with a past or padded keys, masks and a softcap."""
    batch, groups, each = g.integer(1, 2), g.integer(1, 3), g.pick([1, 1, 2, 3])
    rows, new, past = g.pick([1, 2, 3, 5, 9]), g.pick([1, 2, 3, 7, 16]), g.pick([0, 0, 1, 4])
    depth, width, keys = g.pick([1, 2, 4, 8]), g.pick([1, 2, 4, 7]), new + past
    dtype, heads = g.pick(["float32", "float32", "float32", "float16"]), groups * each
    sides = ((heads, rows, depth), (groups, new, depth), (groups, new, width))
    form: dict[str, Any] = {}
    if g.maybe():
        form = {"q_num_heads": heads, "kv_num_heads": groups}
        ins: list[Value | None] = [g.leaf(dtype, (batch, many, n * last), "unit") for n, many, last in sides]
    else:
        ins = [g.leaf(dtype, (batch, *shape), "unit") for shape in sides]
    ins.append(_mask(g, dtype, batch, heads, rows, keys) if g.maybe() else None)
    ins += [g.leaf(dtype, (batch, groups, past, last), "unit") if past else None for last in (depth, width)]
    if g.opset >= 24 and not past and g.maybe(0.3):
        ins.append(g.index(1, keys, (batch,)))
    if g.maybe(0.3):
        form["is_causal"] = 1
    if g.maybe(0.3):
        form["softcap"] = g.pick([0.5, 2.0, 30.0])
    if g.maybe(0.3):
        form["scale"] = g.pick([0.25, 1.0, 0.7])
    results = g.pick([3, 3, 4]) if past else 1
    if results == 4:
        form["qk_matmul_output_mode"] = g.integer(0, 3)
    found = g.nodes_(op, ins, results, **form)
    return found[0] if found else None


def _mask(g: Builder, dtype: str, batch: int, heads: int, rows: int, keys: int) -> Value:
    shape = g.pick([(rows, keys), (1, keys), (1, 1, rows, keys), (batch, 1, rows, keys), (batch, heads, rows, keys)])
    return g.leaf("bool", shape) if g.maybe() else g.leaf(dtype, shape, "unit")


@makes("RotaryEmbedding", opset=23)
def rotary(g: Builder, op: str) -> Value | None:
    batch, length, heads, depth = g.integer(1, 2), g.integer(1, 5), g.integer(1, 3), g.pick([2, 4, 8])
    dtype, turned = g.pick(["float32", "float32", "float16"]), g.pick([0, 0, 2])
    form: dict[str, Any] = {"interleaved": g.integer(0, 1)}
    if g.maybe():
        x, form["num_heads"] = g.leaf(dtype, (batch, length, heads * depth), "unit"), heads
    else:
        x = g.leaf(dtype, (batch, heads, length, depth), "unit")
    if turned:
        form |= {"rotary_embedding_dim": turned, "num_heads": heads}
    half = (turned or depth) // 2
    if g.maybe():
        tables = [g.leaf(dtype, (9, half), "unit") for _ in range(2)]
        return g.node(op, [x, *tables, g.index(0, 8, (batch, length))], **form)
    return g.node(op, [x, *(g.leaf(dtype, (batch, length, half), "unit") for _ in range(2))], **form)


@makes("LinearAttention", opset=27)
def linear(g: Builder, op: str) -> Value | None:
    batch, length, groups, each = g.integer(1, 2), g.integer(1, 5), g.integer(1, 3), g.pick([1, 1, 2])
    depth, width, rule = g.pick([1, 2, 4]), g.pick([1, 3, 4]), g.pick(["linear", "gated", "delta", "gated_delta"])
    last = (groups * each * depth, groups * depth, groups * width)
    ins: list[Value | None] = [g.leaf("float32", (batch, length, n), "unit") for n in last]
    ins.append(g.leaf("float32", (batch, groups, depth, width), "unit") if g.maybe() else None)
    decay = (batch, length, groups * g.pick([1, depth]))
    ins.append(g.leaf("float32", decay, "unit") if "gated" in rule else None)
    ins.append(g.leaf("float32", (batch, length, g.pick([1, groups])), "unit") if "delta" in rule else None)
    form = {"q_num_heads": groups * each, "kv_num_heads": groups, "update_rule": rule}
    found = g.nodes_(op, ins, 2, **form, scale=g.pick([None, 0.5]))
    return found[0] if found else None


@makes("CausalConvWithState", opset=27)
def causal(g: Builder, op: str) -> Value | None:
    batch, channels, taps = g.integer(1, 2), g.integer(1, 5), g.integer(1, 4)
    x, w = g.leaf("float32", (batch, channels, g.integer(1, 5)), "exact"), g.drawn("float32", (channels, 1, taps))
    bias = g.drawn("float32", (channels,)) if g.maybe() else None
    past = g.leaf("float32", (batch, channels, taps - 1), "exact") if taps > 1 and g.maybe() else None
    found = g.nodes_(op, [x, w, bias, past], 2, activation=g.pick([None, "none", "silu", "swish"]))
    return found[0] if found else None
