"""Attention of com.microsoft, by onnxruntime's documentation. That of ONNX is a function of the standard."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges
from .products import less_zero

FILTER = -10000.0


def attended(q: Array, k: Array, v: Array, scale: float, bias: Array | float = 0.0, softcap: float = 0.0,
             sink: Array | None = None) -> Array:  # fmt: skip
    """Of heads [batch, heads, length, size]; `sink` is one more score per head that no value belongs to."""
    scores = q @ k.swapaxes(-1, -2) * scale
    if softcap:
        scores = softcap * np.tanh(scores / softcap)
    scores = scores + bias
    if sink is not None:
        more = np.broadcast_to(sink.reshape(1, -1, 1, 1), (*scores.shape[:-1], 1))
        scores = np.concatenate([scores, more], -1)
    most = scores.max(-1, keepdims=True)
    powers = np.where(np.isneginf(scores), 0, np.exp(scores - np.where(np.isfinite(most), most, 0)))
    total = powers.sum(-1, keepdims=True)
    shares = powers / np.where(total == 0, 1, total)
    return shares[..., : k.shape[-2]] @ v


def heads(x: Array, count: int) -> Array:
    """[batch, length, heads * size] as [batch, heads, length, size]."""
    return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)


def joined(x: Array) -> Array:
    return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)


def mask_bias(mask: Array | None, batch: int, length: int, total: int, fill: float) -> Array | float:
    """What a mask adds to scores: of keys, of queries and keys, or lengths of sequences."""
    if mask is None:
        return 0.0
    if mask.ndim == 1:
        places = np.arange(total)
        if len(mask) == batch:
            kept = places[None] < mask[:, None]
        elif len(mask) == 2 * batch:
            kept = (places[None] < mask[:batch, None]) & (places[None] >= mask[batch:, None])
        else:
            raise NoWitness("a mask of this form")
        kept = kept[:, None, None]
    elif mask.ndim == 2:
        kept = (mask > 0)[:, None, None]
    elif mask.ndim == 3:
        kept = (mask > 0)[:, None]
    else:
        raise NoWitness("a mask of this form")
    if kept.shape[-1] != total or kept.shape[-2] not in (1, length):
        raise NoWitness("a mask of another length")
    return np.where(kept, 0.0, fill)


def causal(length: int, total: int, past: int) -> Array:
    return np.where(np.arange(total)[None] <= np.arange(length)[:, None] + past, 0.0, -np.inf)


def _with_past(past: Array | None, new: Array) -> Array:
    return new if past is None else np.concatenate([past, new], 2)


@judges("com.microsoft::Attention")
def attention(at: NodeSite) -> Any:
    at.only("num_heads", "unidirectional", "qkv_hidden_sizes", "mask_filter_value", "scale")
    x, w = at[0], at[1]
    return _packed(at, x @ w + at.get(2, 0.0), at.get(3), at.get(4), at.get(5, 0.0))


def _packed(at: NodeSite, projected: Array, mask: Array | None, past: Array | None, bias: Any) -> Any:
    count = at.attr("num_heads")
    sizes = at.attr("qkv_hidden_sizes") or [projected.shape[-1] // 3] * 3
    q, k, v = (heads(part, count) for part in np.split(projected, np.cumsum(sizes)[:2], -1))
    before = 0 if past is None else past.shape[3]
    if past is not None:
        k, v = _with_past(past[0], k), _with_past(past[1], v)
    batch, _, length, size = q.shape
    total = k.shape[2]
    added = mask_bias(mask, batch, length, total, at.attr("mask_filter_value", FILTER)) + bias
    if at.attr("unidirectional", 0):
        added = added + causal(length, total, before)
    made = joined(attended(q, k, v, at.attr("scale", 0.0) or size**-0.5, added))
    return (made, np.stack([k, v])) if at.count > 1 else made


@judges("com.microsoft::QAttention")
def quantized_attention(at: NodeSite) -> Any:
    at.only("num_heads", "unidirectional", "mask_filter_value", "scale")
    x, w = less_zero(at[0], at.get(6), -1), less_zero(at[1], at.get(7), -1)
    return _packed(at, x @ w * at[3].reshape(()) * at[4] + at[2], at.get(5), at.get(8), 0.0)


@judges("com.microsoft::MultiHeadAttention")
def multi_head_attention(at: NodeSite) -> Any:
    at.only("num_heads", "unidirectional", "mask_filter_value", "scale")
    count, query = at.attr("num_heads"), at[0]
    if query.ndim == 5:
        q, k, v = (query[:, :, :, n].transpose(0, 2, 1, 3) for n in range(3))
    elif at[1].ndim == 5:
        q, k, v = heads(query, count), *(at[1][:, :, :, n].transpose(0, 2, 1, 3) for n in range(2))
    else:
        q = heads(query, count)
        k, v = (each if each.ndim == 4 else heads(each, count) for each in (at[1], at[2]))
    if at.has(3):
        sizes = [q.shape[1] * each.shape[-1] for each in (q, k, v)]
        parts = np.split(at[3], np.cumsum(sizes)[:2])
        q, k, v = (
            each if n and at.has(1) and at[1].ndim == 4 else each + part.reshape(1, count, 1, -1)
            for n, (each, part) in enumerate(zip((q, k, v), parts, strict=True))
        )
    new = k.shape[2]
    k, v = _with_past(at.get(6), k), _with_past(at.get(7), v)
    batch, _, length, size = q.shape
    total = k.shape[2]
    added = mask_bias(at.get(4), batch, length, total, at.attr("mask_filter_value", FILTER)) + at.get(5, 0.0)
    if at.attr("unidirectional", 0):
        added = added + causal(length, total, total - new)
    made = joined(attended(q, k, v, at.attr("scale", 0.0) or size**-0.5, added))
    return (made, k, v)[: max(at.count, 1)]


# -- rotation by positions


def rotated(x: Array, cosines: Array, sines: Array, interleaved: bool) -> Array:
    """x[batch, heads, length, size]; tables [batch, length, half] turn pairs of the first 2 * half elements."""
    half = cosines.shape[-1]
    cosines, sines = cosines[:, None], sines[:, None]
    turned, rest = x[..., : 2 * half], x[..., 2 * half :]
    if interleaved:
        a, b = turned[..., 0::2], turned[..., 1::2]
        pairs = np.stack([a * cosines - b * sines, b * cosines + a * sines], -1).reshape(turned.shape)
    else:
        a, b = turned[..., :half], turned[..., half:]
        pairs = np.concatenate([a * cosines - b * sines, b * cosines + a * sines], -1)
    return np.concatenate([pairs, rest], -1)


@judges("com.microsoft::RotaryEmbedding")
def rotary_embedding(at: NodeSite) -> Array:
    at.only("interleaved", "num_heads", "rotary_embedding_dim", "scale")
    x, positions, cosines, sines = at[0], at[1].astype(np.int64), at[2], at[3]
    if at.attr("scale", 1.0) != 1.0:
        raise NoWitness("RotaryEmbedding with a scale")
    size = at.attr("rotary_embedding_dim", 0) or 2 * cosines.shape[1]
    count = at.attr("num_heads", 0) or (x.shape[-1] // size if x.ndim == 3 else x.shape[1])
    parts = x if x.ndim == 4 else heads(x, count)
    length = parts.shape[2]
    places = positions.reshape(-1, 1) + np.arange(length) if positions.size == 1 else positions
    places = np.broadcast_to(places, (parts.shape[0], length))
    found = rotated(parts, cosines[places], sines[places], bool(at.attr("interleaved", 0)))
    return found if x.ndim == 4 else joined(found)


@judges("com.microsoft::GroupQueryAttention")
def group_query_attention(at: NodeSite) -> Any:
    at.only("num_heads", "kv_num_heads", "scale", "softcap", "do_rotary", "rotary_interleaved", "local_window_size",
            "smooth_softmax")  # fmt: skip
    count, shared = at.attr("num_heads"), at.attr("kv_num_heads")
    packed = at[0]
    if at.has(1):
        q, k, v = heads(packed, count), heads(at[1], shared), heads(at[2], shared)
    else:
        size = packed.shape[-1] // (count + 2 * shared)
        parts = np.split(packed, [count * size, (count + shared) * size], -1)
        q, k, v = (heads(part, n) for part, n in zip(parts, (count, shared, shared), strict=True))
    batch, _, length, size = q.shape
    ends = at[5].reshape(-1).astype(np.int64) + 1
    total = int(np.asarray(at[6]).reshape(-1)[0])
    room = at[3].shape[2] if at.has(3) else 0
    first = total == length  # a prompt begins at 0, whatever its own length
    befores = np.zeros(batch, np.int64) if first else ends - length
    if at.attr("do_rotary", 0):
        places = befores[:, None] + np.arange(length)
        if at.has(9):  # "When processing the first prompt the kernel uses only the first element"
            places = places + at[9].item(0) if first else at[9].astype(np.int64)
        turn = bool(at.attr("rotary_interleaved", 0))
        places = np.clip(places, 0, len(at[7]) - 1)
        q, k = (rotated(each, at[7][places], at[8][places], turn) for each in (q, k))
    keys, values = (_cached(at.get(n), new, befores, max(room, total)) for n, new in ((3, k), (4, v)))
    made = np.zeros((batch, count, length, v.shape[-1]))
    for n in range(batch):
        kept = int(befores[n]) + length
        seen = causal(length, kept, int(befores[n]))
        window = at.attr("local_window_size", -1)
        if window > 0:
            rows = np.arange(length)[:, None] + int(befores[n])
            seen = np.where(np.arange(kept)[None] <= rows - window, -np.inf, seen)
        bias = seen + (at[10][n % at[10].shape[0], :, :, :kept] if at.has(10) else 0.0)
        sink = at.get(11, np.zeros(count) if at.attr("smooth_softmax", 0) == 1 else None)
        group = count // shared
        own, theirs = np.repeat(keys[n : n + 1, :, :kept], group, 1), np.repeat(values[n : n + 1, :, :kept], group, 1)
        scale = at.attr("scale", 0.0) or size**-0.5
        made[n] = attended(q[n : n + 1], own, theirs, scale, bias, at.attr("softcap", 0.0), sink)[0]
        if first and ends[n] < length:
            raise NoWitness("queries behind the end of a prompt")
    return (joined(made), keys, values)[: max(at.count, 1)]


def _cached(past: Array | None, new: Array, befores: Array, room: int) -> Array:
    found = np.zeros((new.shape[0], new.shape[1], room, new.shape[3]))
    for n, before in enumerate(befores):
        if past is not None:
            found[n, :, : past.shape[2]] = past[n]
        found[n, :, before : before + new.shape[2]] = new[n]
    return found
