"""Gemma, Gemma 2 and the text part of Gemma 3: norms around both halves of a layer, caps, and windows in turns."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from ..config import Config, unsupported
from ..description import Decoder
from ..family import FULL, LLAMA_NAMES, SLIDING, Family, llama_like, turned_by_kind, windowed

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


def _gemma2(config: Config, every: int = 2) -> Decoder:
    return windowed(config.filled(sliding_window=4096), _caps(config, _gemma(config, "hidden_activation")), every)


def _gemma3(config: Config) -> Decoder:
    made = replace(_gemma2(config, 6), score_cap=0.0)
    near = config.real("rope_local_base_freq", 10000.0)
    return turned_by_kind(config, made, {FULL: config.real("rope_theta", 1e6), SLIDING: near})


FAMILIES = (
    Family(("gemma",), _gemma, architectures=("gemma",), norm_offset=1.0),
    Family(("gemma2",), _gemma2, NAMES, architectures=("gemma2",), norm_offset=1.0),
    Family(("gemma3_text",), _gemma3, NAMES, architectures=("gemma3",), norm_offset=1.0),
)
