"""Decoders in doubles, written from their definitions, over whole texts: without a cache, and with no code of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

Weights = Mapping[str, np.ndarray]


def logits(tokens: np.ndarray, w: Weights, layers: int, heads: int, groups: int, **how: Any) -> np.ndarray:
    """[tokens, vocabulary] of weights by role, `0.q` the rows of the queries of layer 0."""
    x = w["embed"][tokens].astype(np.float64) * how.get("embedding", 1.0)
    if "positions" in w:
        x = x + w["positions"][: len(tokens)]
    for number in range(layers):
        mine = {name.partition(".")[2]: a for name, a in w.items() if name.startswith(f"{number}.")}
        mixed = _attention(_norm(x, mine, "attn_norm"), mine, heads, groups, number, how)
        x = x + _norm(mixed, mine, "attn_post_norm")
        normed = _norm(x, mine, "mlp_norm")
        made = _mixed(normed, mine, **how["experts"]) if "router" in mine else _mlp(normed, mine)
        x = x + _norm(made, mine, "mlp_post_norm")
    made = _norm(x, w, "final_norm") @ w.get("head", w["embed"]).T.astype(np.float64)
    return np.asarray(_capped(made, how.get("logit_cap", 0)))


def _norm(x: np.ndarray, w: Weights, role: str) -> np.ndarray:
    if role not in w:
        return x
    if f"{role}.bias" in w:
        x = x - x.mean(-1, keepdims=True)
    scaled = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
    return np.asarray(scaled * w[role] + w.get(f"{role}.bias", 0.0))


def _linear(x: np.ndarray, w: Weights, role: str) -> np.ndarray:
    return np.asarray(x @ w[role].T.astype(np.float64) + w.get(f"{role}.bias", 0.0))


def _attention(x: np.ndarray, w: Weights, heads: int, groups: int, number: int, how: Mapping[str, Any]) -> np.ndarray:
    count = len(x)
    q, k, v = (
        _linear(x, w, role).reshape(count, parts, -1)
        for role, parts in zip("qkv", (heads, groups, groups), strict=True)
    )
    q, k = (_norm(each, w, f"{side}_norm") for each, side in ((q, "q"), (k, "k")))
    if how.get("turns", True):
        q, k = (_turned(each, how.get("turned", each.shape[-1])) for each in (q, k))
    k, v = (_stored(each, how.get("cache", "")) for each in (k, v))
    distance = np.subtract.outer(np.arange(count), np.arange(count))
    seen = (distance >= 0) & (distance < (how.get("windows") or {}).get(number, count))
    made = []
    for head in range(heads):
        group = head // (heads // groups)
        scores = _capped(q[:, head] @ k[:, group].T * how.get("factor", q.shape[-1] ** -0.5), how.get("score_cap", 0))
        scores = np.where(seen, scores, -np.inf)
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        made.append(shares / shares.sum(-1, keepdims=True) @ v[:, group])
    return _linear(np.concatenate(made, -1), w, "o")


def _turned(x: np.ndarray, channels: int) -> np.ndarray:
    half = channels // 2
    angles = np.outer(np.arange(len(x)), 10000.0 ** -(np.arange(half) / half))[:, None]
    one, other = x[..., :half], x[..., half:channels]
    turned = one * np.cos(angles) - other * np.sin(angles), other * np.cos(angles) + one * np.sin(angles)
    return np.concatenate([*turned, x[..., channels:]], -1)


def _stored(x: np.ndarray, kind: str) -> np.ndarray:
    """Keys or values as a cache of few bits has them."""
    if kind == "f16":
        return np.asarray(x.astype(np.float32).astype(np.float16).astype(np.float64))
    if kind == "int8":
        scale = np.maximum(np.abs(x.astype(np.float32)).max(-1, keepdims=True) / np.float32(127), np.float32(2.0**-126))
        return np.asarray(np.round(x.astype(np.float32) / scale) * scale.astype(np.float64))
    return x


def _mixed(x: np.ndarray, w: Weights, chosen: int, among_best: bool) -> np.ndarray:
    """Each token through the experts `expert.3.gate` ... that its row of scores prefers."""
    scores = _linear(x, w, "router")
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    best = np.argsort(-shares, -1)[:, :chosen]
    kept = np.zeros_like(shares)
    np.put_along_axis(kept, best, np.take_along_axis(shares, best, -1), -1)
    kept /= kept.sum(-1, keepdims=True) if among_best else 1
    made = np.zeros_like(x)
    for number in range(shares.shape[1]):
        own = {side: w[f"expert.{number}.{side}"] for side in ("gate", "up", "down")}
        made += kept[:, [number]] * _mlp(x, own)
    return made


def _mlp(x: np.ndarray, w: Weights) -> np.ndarray:
    if "gate" in w:
        gate = _linear(x, w, "gate")
        made = (_gelu(gate) if "mlp_post_norm" in w else gate / (1 + np.exp(-gate))) * _linear(x, w, "up")
    else:
        made = _gelu(_linear(x, w, "up"))
    return _linear(made, w, "down")


def _gelu(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def _capped(x: np.ndarray, cap: float) -> np.ndarray:
    return np.tanh(x / cap) * cap if cap else x


def random_weights(sizes: Mapping[str, int], chance: np.random.Generator, gpt: bool = False) -> dict[str, np.ndarray]:
    """By role. sizes: vocabulary, width, heads, groups, head, hidden, layers."""
    width, hidden, wide = sizes["width"], sizes["hidden"], sizes["heads"] * sizes["head"]
    narrow = sizes["groups"] * sizes["head"]
    shapes: dict[str, tuple[int, ...]] = {"embed": (sizes["vocabulary"], width), "final_norm": (width,)}
    for n in range(sizes["layers"]):
        shapes |= {f"{n}.attn_norm": (width,), f"{n}.mlp_norm": (width,), f"{n}.o": (width, wide)}
        shapes |= {f"{n}.q": (wide, width), f"{n}.k": (narrow, width), f"{n}.v": (narrow, width)}
        shapes |= {f"{n}.up": (hidden, width), f"{n}.down": (width, hidden)}
        shapes |= {} if gpt else {f"{n}.gate": (hidden, width)}
    if gpt:
        shapes |= {f"{name}.bias": shape[:1] for name, shape in shapes.items() if name != "embed"}
    return {name: _random(name, shape, chance) for name, shape in shapes.items()}


def with_experts(weights: Weights, layers: int, count: int, chance: np.random.Generator) -> dict[str, np.ndarray]:
    """The same with a mixture of experts in each layer."""
    found = dict(weights)
    for n in range(layers):
        plain = {side: found.pop(f"{n}.{side}") for side in ("gate", "up", "down")}
        found[f"{n}.router"] = _random("router", (count, plain["gate"].shape[1]), chance)
        for e in range(count):
            found |= {f"{n}.expert.{e}.{side}": _random(side, w.shape, chance) for side, w in plain.items()}
    return found


def _random(name: str, shape: tuple[int, ...], chance: np.random.Generator) -> np.ndarray:
    made = chance.standard_normal(shape).astype(np.float32)
    if len(shape) == 1:  # biases are around 0: one of 1 for all channels would choose the same token every time
        return np.float32(not name.endswith(".bias")) + np.float32(0.1) * made
    return made * np.float32(1.5 / np.sqrt(shape[1]))
