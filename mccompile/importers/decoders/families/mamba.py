"""Mamba, Falcon Mamba and Mamba 2: a short convolution, and a state that fades as each token says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..config import Config, damaged, unsupported
from ..family import Family
from ..fixed_states import Recurrent, Writer
from ..nodes import Nodes
from ..told import Told

_MIXER = "backbone.layers.{}.mixer"
_NAMES = {
    "embed": "backbone.embeddings.weight",
    "final_norm": "backbone.norm_f.weight",
    "head": "lm_head.weight",
    "norm": "backbone.layers.{}.norm.weight",
    "in": f"{_MIXER}.in_proj.weight",
    "in.bias": f"{_MIXER}.in_proj.bias",
    "conv": f"{_MIXER}.conv1d.weight",
    "conv.bias": f"{_MIXER}.conv1d.bias",
    "x": f"{_MIXER}.x_proj.weight",
    "dt": f"{_MIXER}.dt_proj.weight",
    "dt.bias": f"{_MIXER}.dt_proj.bias",
    "a": f"{_MIXER}.A_log",
    "d": f"{_MIXER}.D",
    "out": f"{_MIXER}.out_proj.weight",
    "out.bias": f"{_MIXER}.out_proj.bias",
}
_NAMES2 = {**_NAMES, "dt.bias": f"{_MIXER}.dt_bias", "gated_norm": f"{_MIXER}.norm.weight"}
_GGUF = {
    "embed": "token_embd.weight",
    "final_norm": "output_norm.weight",
    "head": "output.weight",
    "norm": "blk.{}.attn_norm.weight",
    "in": "blk.{}.ssm_in.weight",
    "conv": "blk.{}.ssm_conv1d.weight",
    "conv.bias": "blk.{}.ssm_conv1d.bias",
    "x": "blk.{}.ssm_x.weight",
    "dt": "blk.{}.ssm_dt.weight",
    "dt.bias": "blk.{}.ssm_dt.bias",
    "a": "blk.{}.ssm_a",
    "d": "blk.{}.ssm_d",
    "gated_norm": "blk.{}.ssm_norm.weight",
    "out": "blk.{}.ssm_out.weight",
}

_NO_LIMITS = ([0.0, math.inf], [0.0, {"__float__": "Infinity"}])  # of a time step, as transformers writes them


def _inner(config: Config) -> int:
    """Channels inside of a layer."""
    if config.has("inner_size"):  # of a GGUF file
        return config.count("inner_size")
    return max(1, int(config.real("expand", 2) * config.count("hidden_size")))


def _rows(config: Config) -> int:
    """Tokens before, which the convolution sees."""
    return config.count("conv_kernel", 4, least=2) - 1


def _made(config: Config, states: dict[str, tuple[int, ...]], layer: Any, tied: bool) -> Recurrent:
    if config.text("hidden_act", "silu") not in ("silu", "swish"):
        raise unsupported(f"hidden_act is {config.text('hidden_act')[:40]!r}, not 'silu'")
    if config.flag("rescale_prenorm_residual"):
        why = "rescale_prenorm_residual is true: transformers 4 takes weights as stored, 5 scales them as it loads them"
        raise unsupported(why, 'set "rescale_prenorm_residual" to false in config.json: both take them as stored then')
    return Recurrent(
        vocabulary=config.count("vocab_size"),
        width=config.count("hidden_size"),
        layers=config.count("num_hidden_layers"),
        states=states,
        layer=layer,
        epsilon=config.real("layer_norm_epsilon", 1e-5),
        tied=config.flag("tie_word_embeddings", tied),
    )


def _mamba(config: Config) -> Recurrent:
    inner, size = _inner(config), config.count("state_size", 16)
    if config.has("intermediate_size") and not config.has("inner_size"):
        inner = config.count("intermediate_size")  # of Falcon Mamba, whose `expand` says something else
    states: dict[str, tuple[int, ...]] = {"conv": (1, _rows(config), inner), "ssm": (1, inner, size)}
    return _made(config, states, partial(_layer, config), tied=True)


def _falcon_mamba(config: Config) -> Recurrent:
    return _mamba(config.filled(mixer_rms_eps=1e-6))


@np.errstate(over="ignore")
def _decay(config: Config, array: np.ndarray) -> np.ndarray:
    return array if config.has("inner_size") else -np.exp(array)  # GGUF has it computed


def _layer(config: Config, w: Writer, x: str, number: int) -> str:
    nodes, width = w.nodes, w.made.width
    _, inner, size = w.made.states["ssm"]
    whole = w.linear(w.norm(x, "norm", number), "in", number, 2 * inner, width)
    u = nodes.op("Split", whole, nodes.ints(inner, inner), outputs=2, axis=-1)
    gate, u = f"{u}_1", w.convolved(u, "conv", number, "conv")
    auto = config.values.get("time_step_rank", "auto") == "auto"
    rank = -(-width // 16) if auto else config.count("time_step_rank")
    parts = nodes.op(
        "Split", nodes.product(u, w.need("x", (rank + 2 * size, inner), number), None), nodes.ints(rank, size, size),
        outputs=3, axis=-1,
    )  # fmt: skip
    shares = [parts, f"{parts}_1", f"{parts}_2"]
    if config.has("mixer_rms_eps"):
        shares = [
            _even(nodes, x, n, config.real("mixer_rms_eps")) for x, n in zip(shares, (rank, size, size), strict=True)
        ]
    step = nodes.op("Softplus", w.linear(shares[0], "dt", number, inner, rank))
    decay = nodes.constant(_decay(config, w.array("a", (inner, size), number)))
    given = {step: (1, inner), u: (1, inner), shares[1]: (1, size), shares[2]: (1, size)}
    y = w.scanned(number, ["ssm"], given, (1, inner), partial(_step, decay))
    y = nodes.op("Add", y, nodes.op("Mul", u, nodes.constant(w.array("d", (inner,), number))))
    y = nodes.op("Mul", y, nodes.activated(gate, "silu"))
    return nodes.op("Add", x, w.linear(y, "out", number, width, inner))


def _even(nodes: Nodes, x: str, width: int, epsilon: float) -> str:
    """An RMSNorm without weights."""
    ones = nodes.once(("ones", width), lambda: nodes.constant(np.ones(width, np.float32)))
    return nodes.op("RMSNormalization", x, ones, axis=-1, epsilon=epsilon)


def _step(decay: str, nodes: Nodes, olds: Sequence[str], token: Sequence[str]) -> tuple[Sequence[str], str]:
    """state = exp(dt * A) * state + dt * u * B; y = state * C"""
    dt, u, b, c = token
    kept = nodes.op("Mul", nodes.op("Exp", nodes.op("Mul", _last(nodes, dt), decay)), olds[0])
    new = nodes.op("Mul", _last(nodes, nodes.op("Mul", dt, u)), nodes.op("Unsqueeze", b, nodes.ints(1)))
    state = nodes.op("Add", kept, new)
    seen = nodes.op("Mul", state, nodes.op("Unsqueeze", c, nodes.ints(1)))
    return [state], nodes.op("ReduceSum", seen, nodes.ints(-1), keepdims=0)


def _last(nodes: Nodes, x: str) -> str:
    return nodes.op("Unsqueeze", x, nodes.ints(-1))


def _mamba2(config: Config) -> Recurrent:
    inner, size, groups = _inner(config), config.count("state_size", 128), config.count("n_groups", 8)
    heads = config.count("num_heads", 128)
    if inner % heads or heads % groups or config.count("head_dim", inner // heads) * heads != inner:
        raise damaged(f"{inner} channels are not {heads} heads in {groups} groups")
    if config.values.get("time_step_limit") not in (None, *_NO_LIMITS):
        raise unsupported(f"time_step_limit is {str(config.values['time_step_limit'])[:40]}")
    states: dict[str, tuple[int, ...]] = {
        "conv": (1, _rows(config), inner + 2 * groups * size),
        "ssm": (1, groups, heads // groups, inner // heads, size),
    }
    return _made(config, states, partial(_layer2, config), tied=False)


def _layer2(config: Config, w: Writer, x: str, number: int) -> str:
    nodes, width = w.nodes, w.made.width
    _, groups, each, channels, size = w.made.states["ssm"]
    mixed, heads, inner = w.made.states["conv"][2], groups * each, groups * each * channels
    whole = w.linear(w.norm(x, "norm", number), "in", number, inner + mixed + heads, width)
    gate = nodes.op("Split", whole, nodes.ints(inner, mixed, heads), outputs=3, axis=-1)
    step = nodes.op("Add", f"{gate}_2", nodes.floats(w.need("dt.bias", (heads,), number)))
    step = nodes.op("Reshape", nodes.op("Softplus", step), nodes.ints(0, 0, groups, each))
    parts = nodes.op(
        "Split", w.convolved(f"{gate}_1", "conv", number, "conv"), nodes.ints(inner, groups * size, groups * size),
        outputs=3, axis=-1,
    )  # fmt: skip
    u = nodes.op("Reshape", parts, nodes.ints(0, 0, groups, each, channels))
    b, c = (nodes.op("Reshape", f"{parts}_{at}", nodes.ints(0, 0, groups, size)) for at in (1, 2))
    decay = nodes.constant(_decay(config, w.array("a", (heads,), number)).reshape(groups, each))
    given = {step: (1, groups, each), u: (1, groups, each, channels), b: (1, groups, size), c: (1, groups, size)}
    y = w.scanned(number, ["ssm"], given, (1, groups, each, channels), partial(_step2, decay))
    skip = nodes.constant(w.array("d", (heads,), number).reshape(groups, each, 1))
    y = nodes.op("Reshape", nodes.op("Add", y, nodes.op("Mul", u, skip)), nodes.ints(0, 0, inner))
    y = nodes.op("Mul", y, nodes.activated(gate, "silu"))
    y = _even(nodes, nodes.op("Reshape", y, nodes.ints(0, 0, groups, -1)), inner // groups, w.made.epsilon)
    scale = nodes.constant(w.array("gated_norm", _norm_shape(config, groups, inner), number).reshape(inner))
    y = nodes.op("Mul", nodes.op("Reshape", y, nodes.ints(0, 0, inner)), scale)
    return nodes.op("Add", x, w.linear(y, "out", number, width, inner))


def _norm_shape(config: Config, groups: int, inner: int) -> tuple[int, ...]:
    return (groups, inner // groups) if config.has("inner_size") else (inner,)


def _step2(decay: str, nodes: Nodes, olds: Sequence[str], token: Sequence[str]) -> tuple[Sequence[str], str]:
    dt, u, b, c = token
    fade = nodes.op("Unsqueeze", nodes.op("Exp", nodes.op("Mul", dt, decay)), nodes.ints(3, 4))
    moved = nodes.op("Mul", u, _last(nodes, dt))
    new = nodes.op("Mul", _last(nodes, moved), nodes.op("Unsqueeze", b, nodes.ints(2, 3)))
    state = nodes.op("Add", nodes.op("Mul", olds[0], fade), new)
    seen = nodes.op("Mul", state, nodes.op("Unsqueeze", c, nodes.ints(2, 3)))
    return [state], nodes.op("ReduceSum", seen, nodes.ints(-1), keepdims=0)


def _gguf(told: Told) -> dict[str, Any]:
    epsilon = told.values.get("rms_norm_eps")
    even = epsilon if told.said.get("ssm.dt_b_c_rms") else None
    return {"layer_norm_epsilon": epsilon, "mixer_rms_eps": even, **_ssm(told)}


def _gguf2(told: Told) -> dict[str, Any]:
    made = {"layer_norm_epsilon": told.values.get("rms_norm_eps"), **_ssm(told)}
    return {**made, "num_heads": made.pop("time_step_rank")}


def _ssm(told: Told) -> dict[str, Any]:
    words = {"inner_size": "inner_size", "state_size": "state_size", "conv_kernel": "conv_kernel"}
    words |= {"time_step_rank": "time_step_rank", "n_groups": "group_count"}
    return {word: told.said.get(f"ssm.{name}") for word, name in words.items()}


FAMILIES = (
    Family(("mamba",), _mamba, _NAMES, architectures=("mamba",), gguf_names=_GGUF, own=_gguf, attends=False),
    Family(("falcon_mamba",), _falcon_mamba, _NAMES, attends=False),
    Family(("mamba2",), _mamba2, _NAMES2, architectures=("mamba2",), gguf_names=_GGUF, own=_gguf2, attends=False),
)
