"""Gemma, Gemma 2 and the text part of Gemma 3: norms around both halves of a layer, caps, and windows in turns."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from ..config import Config, unsupported
from ..description import Decoder
from ..family import FULL, LLAMA_NAMES, SLIDING, Family, llama_like, turned_by_kind, windowed
from ..told import Told, no_window

NAMES = {
    **LLAMA_NAMES,
    "attn_post_norm": "model.layers.{}.post_attention_layernorm",
    "mlp_norm": "model.layers.{}.pre_feedforward_layernorm",
    "mlp_post_norm": "model.layers.{}.post_feedforward_layernorm",
}


def _gemma(config: Config, name: str = "hidden_act") -> Decoder:
    """`name`: of the activation."""
    made = llama_like(Config({**config.filled(head_dim=256).values, "hidden_act": None}), tied=True)
    activation = config.activation(name, "gelu_pytorch_tanh")
    if name == "hidden_act" and activation == "gelu":  # of the first files, whose library takes the other one
        activation = "gelu_tanh"
    factor = float(np.float32(math.sqrt(made.width)))
    return replace(made, activation=activation, embedding_factor=factor)


def _caps(config: Config, made: Decoder) -> Decoder:
    if config.has("use_bidirectional_attention") and config.flag("use_bidirectional_attention"):
        raise unsupported("attention to what comes later")
    score, logit = (
        config.real(name) if config.has(name) else 0.0 for name in ("attn_logit_softcapping", "final_logit_softcapping")
    )
    factor = abs(config.real("query_pre_attn_scalar", 256)) ** -0.5
    return replace(made, score_cap=score, logit_cap=logit, score_factor=factor)


def _windows(config: Config, every: int) -> Decoder:
    return windowed(config.filled(sliding_window=4096), _caps(config, _gemma(config, "hidden_activation")), every)


def _gemma2(config: Config) -> Decoder:
    usual = {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}  # null says none
    return _windows(Config({**usual, **config.values}), 2)


def _gemma3(config: Config) -> Decoder:
    made = replace(_windows(config, 6), score_cap=0.0)
    near = config.real("rope_local_base_freq", 10000.0)
    return turned_by_kind(config, made, {FULL: config.real("rope_theta", 1e6), SLIDING: near})


def _gemma2_gguf(told: Told, largest: int = 46) -> dict[str, Any]:
    """The factor of scores is that of the head, but in the model with most layers."""
    config = Config(told.values)
    wide = config.count("hidden_size") // config.count("num_attention_heads")
    return {"query_pre_attn_scalar": wide if told.layers == largest else config.count("head_dim")}


def _gemma3_gguf(told: Told) -> dict[str, Any]:
    made = {**_gemma2_gguf(told, 62), **told.by_kind(10000.0)}
    if told.values.get("sliding_window") is None:
        made["layer_types"] = [FULL] * len(told.by_layer(1))
    scaling, size = told.values.get("rope_scaling") or {}, told.said.get("rope.scaling.attn_factor")
    if size and scaling.get("rope_type") == "yarn":  # of cosines in all layers
        made["rope_parameters"][SLIDING] |= {**scaling, "factor": 1.0, "attention_factor": size}
    return made


FAMILIES = (
    Family(("gemma",), _gemma, architectures=("gemma",), own=no_window, norm_offset=1.0, context=8192),
    Family(("gemma2",), _gemma2, NAMES, architectures=("gemma2",), own=_gemma2_gguf, norm_offset=1.0, context=8192),
    Family(
        ("gemma3_text",), _gemma3, NAMES, architectures=("gemma3",), own=_gemma3_gguf, norm_offset=1.0, context=131072
    ),
)
