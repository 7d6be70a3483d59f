"""Phi (1, 1.5, 2), Persimmon and Nemotron: LayerNorm, an MLP without a gate, part of each head turned."""

from __future__ import annotations

from dataclasses import replace

from ..config import Config
from ..description import Decoder
from ..family import LLAMA_NAMES, Family, by_groups, partly_turned

_PHI = {
    **{role: name for role, name in LLAMA_NAMES.items() if role not in ("gate", "mlp_norm")},
    "final_norm": "model.final_layernorm",
    "o": "model.layers.{}.self_attn.dense",
    "q_norm": "model.layers.{}.self_attn.q_layernorm",
    "k_norm": "model.layers.{}.self_attn.k_layernorm",
    "up": "model.layers.{}.mlp.fc1",
    "down": "model.layers.{}.mlp.fc2",
}
_PERSIMMON = {
    **{role: name for role, name in _PHI.items() if role not in "qkv"},
    "qkv": "model.layers.{}.self_attn.query_key_value",
    "mlp_norm": LLAMA_NAMES["mlp_norm"],
    "up": "model.layers.{}.mlp.dense_h_to_4h",
    "down": "model.layers.{}.mlp.dense_4h_to_h",
}
_NEMOTRON = {role: name for role, name in LLAMA_NAMES.items() if role != "gate"}


def _half_turned(config: Config, activation: str, epsilon: str) -> Decoder:
    made = partly_turned(config.filled(hidden_act=activation), 0.5)
    return replace(made, rms=False, gated=False, epsilon=config.real(epsilon, 1e-5))


def _phi(config: Config) -> Decoder:
    return replace(_half_turned(config, "gelu_new", "layer_norm_eps"), parallel=True)


def _persimmon(config: Config) -> Decoder:
    made = _half_turned(config, "relu2", "layer_norm_eps")
    return replace(made, groups=made.heads)


def _nemotron(config: Config) -> Decoder:
    return _half_turned(config, "relu2", "norm_eps")


FAMILIES = (
    Family(("phi",), _phi, _PHI, architectures=("phi2",)),
    Family(("persimmon",), _persimmon, _PERSIMMON, split=by_groups, context=16384),
    Family(("nemotron",), _nemotron, _NEMOTRON, architectures=("nemotron",), norm_offset=1.0, context=4096),
)
