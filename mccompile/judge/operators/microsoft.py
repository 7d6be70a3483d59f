"""com.microsoft: activations, normalizations and fused operators, by onnxruntime's documentation of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..rules import Array, NodeSite, judges
from .elementwise import gelu, sigmoid
from .normalizations import EPSILON, root_mean_square, standardized
from .recurrent import activation
from .windows import convolved, max_pool, with_bias


@judges("com.microsoft::Gelu")
def gelu_of_microsoft(at: NodeSite) -> Array:
    return gelu(at[0])


@judges("com.microsoft::BiasGelu")
def bias_gelu(at: NodeSite) -> Array:
    return gelu(at[0] + at[1])


@judges("com.microsoft::FastGelu")
def fast_gelu(at: NodeSite) -> Array:
    return gelu(at[0] + at.get(1, 0.0), "tanh")


@judges("com.microsoft::QuickGelu")
def quick_gelu(at: NodeSite) -> Array:
    return at[0] * sigmoid(at.attr("alpha", float(np.float32(1.702))) * at[0])


@judges("com.microsoft::GatedAdd")
def gated_add(at: NodeSite) -> Array:
    return at[0] + at[1] * at[2]


@judges("com.microsoft::FusedConv")
def fused_conv(at: NodeSite) -> Array:
    found = with_bias(convolved(at, at[0], at[1], at.attr("group", 1)), at.get(2))
    found = found + at.get(3, 0.0)
    return _activated(at, found, at.attr("activation", ""), list(at.attr("activation_params") or ()))


def _activated(at: NodeSite, x: Array, name: str, numbers: list[float]) -> Array:
    if not name:
        return x
    if name == "Clip":
        return np.clip(x, numbers[0], numbers[1])
    alpha, beta = (*numbers, None, None)[:2]
    return activation(name, alpha, beta)(x)


@judges("com.microsoft::FusedGemm")
def fused_gemm(at: NodeSite) -> Array:
    a = at[0].T if at.attr("transA", 0) else at[0]
    b = at[1].T if at.attr("transB", 0) else at[1]
    found = at.attr("alpha", 1.0) * (a @ b) + at.attr("beta", 1.0) * at.get(2, 0.0)
    numbers = [at.attr(f"activation_{name}") for name in ("alpha", "beta", "gamma")]
    return _activated(at, found, at.attr("activation", ""), numbers[:2])


@judges("com.microsoft::SkipLayerNormalization", "com.microsoft::SkipSimplifiedLayerNormalization")
def skip_layer_normalization(at: NodeSite) -> Any:
    simplified = "Simplified" in at.node.op
    total = at[0] + at[1] + at.get(3 if simplified else 4, 0.0)
    epsilon = at.attr("epsilon", float(np.float32(1e-12)) if not simplified else EPSILON)
    if simplified:
        found, inverse = root_mean_square(at, total, (-1,), epsilon)
        mean = np.zeros_like(inverse)
        found = found * at[2]
    else:
        found, mean, inverse = standardized(at, total, (-1,), epsilon)
        found = found * at[2] + at.get(3, 0.0)
    return (found, mean, inverse, total)[: max(at.count, 1)]


@judges("com.microsoft::EmbedLayerNormalization")
def embed_layer_normalization(at: NodeSite) -> Any:
    ids = at[0].astype(np.int64)
    positions = at.get(8, np.arange(ids.shape[1])[None]).astype(np.int64)
    total = at[2][ids] + at[3][positions]
    if at.has(1) and at.has(4):
        total = total + at[4][at[1].astype(np.int64)]
    found, _, _ = standardized(at, total, (-1,), at.attr("epsilon", float(np.float32(1e-12))))
    lengths = at[7].astype(np.int32).sum(1) if at.has(7) else np.zeros(len(ids), np.int32)
    return (found * at[5] + at[6], lengths.astype(np.int32), total)[: max(at.count, 1)]


@judges("com.microsoft::NhwcMaxPool")
def nhwc_max_pool(at: NodeSite) -> Array:
    turned = replace(at, operands=[np.moveaxis(at[0], -1, 1)])
    found = max_pool(turned)
    return np.moveaxis(found[0] if isinstance(found, tuple) else found, 1, -1)


@judges("com.microsoft::NGramRepeatBlock")
def ngram_repeat_block(at: NodeSite) -> Array:
    ids, scores, size = at[0], at[1].copy(), at.attr("ngram_size")
    for row, kept in zip(ids, scores, strict=True):
        last = row[len(row) - size + 1 :] if size > 1 else row[:0]
        for first in range(len(row) - size + 1):
            if np.array_equal(row[first : first + size - 1], last):
                kept[row[first + size - 1]] = -np.inf
    return scores


@judges("com.microsoft::MurmurHash3")
def murmur_hash(at: NodeSite) -> Array:
    x = at[0]
    if x.dtype.kind == "f" and at.type(0) != "float64":
        x = x.astype(at.type(0))
    found = [_murmur(_bytes(each), at.attr("seed", 0)) for each in x.reshape(-1)]
    hashed = np.array(found, np.uint32).reshape(x.shape)
    return hashed if at.attr("positive", 1) else hashed.view(np.int32)


def _bytes(value: Any) -> bytes:
    return value.encode(errors="surrogateescape") if isinstance(value, str) else value.tobytes()


def _murmur(data: bytes, seed: int) -> int:
    """MurmurHash3_x86_32."""
    most, state = 0xFFFFFFFF, seed & 0xFFFFFFFF

    def turned(x: int, by: int) -> int:
        return (x << by | x >> (32 - by)) & most

    def mixed(k: int) -> int:
        return turned(k * 0xCC9E2D51 & most, 15) * 0x1B873593 & most

    whole = len(data) // 4 * 4
    for n in range(0, whole, 4):
        state = (turned(state ^ mixed(int.from_bytes(data[n : n + 4], "little")), 13) * 5 + 0xE6546B64) & most
    if len(data) > whole:
        state ^= mixed(int.from_bytes(data[whole:], "little"))
    state ^= len(data)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        state = (state ^ state >> shift) * factor & most
    return state


@judges("com.microsoft::WordConvEmbedding")
def word_conv_embedding(at: NodeSite) -> Array:
    """Characters of words, convolved, Tanh, and the largest of each filter; words of no characters give 0."""
    words, w, bias, table = at[0].astype(np.int64), at[1], at[2], at[3]
    filters, width = w.shape[0], at.attr("conv_window_size", w.shape[2])
    found = np.zeros((*words.shape[:2], filters))
    for place in np.ndindex(*words.shape[:2]):
        characters = words[place]
        length = int(np.argmax(characters == 0)) if (characters == 0).any() else len(characters)
        if characters[0] == 0:
            continue
        embedded = table[characters]
        count = max(length - width + 1, 1)
        windows = np.stack([embedded[n : n + width].reshape(-1) for n in range(count)])
        found[place] = np.tanh(windows @ w.reshape(filters, -1).T + bias).max(0)
    return found
