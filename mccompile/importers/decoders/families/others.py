"""Variations of Llama: Granite, OLMo 2, SmolLM 3, StarCoder 2, StableLM."""

from __future__ import annotations

from dataclasses import replace

from ..config import Config, damaged
from ..description import Decoder
from ..family import LLAMA_NAMES, Family, llama_like, partly_turned

_OLMO2 = {
    **{role: name for role, name in LLAMA_NAMES.items() if role not in ("attn_norm", "mlp_norm")},
    "attn_post_norm": "model.layers.{}.post_attention_layernorm",
    "mlp_post_norm": "model.layers.{}.post_feedforward_layernorm",
}
_STARCODER2 = {
    **{role: name for role, name in LLAMA_NAMES.items() if role != "gate"},
    "up": "model.layers.{}.mlp.c_fc",
    "down": "model.layers.{}.mlp.c_proj",
}


def _granite(config: Config) -> Decoder:
    scaling = config.real("logits_scaling", 1.0)
    if not scaling:
        raise damaged("logits_scaling is 0")
    return replace(
        llama_like(config),
        embedding_factor=config.real("embedding_multiplier", 1.0),
        residual_factor=config.real("residual_multiplier", 1.0),
        score_factor=config.real("attention_multiplier", 1.0),
        logit_factor=1 / scaling,
    )


def _olmo2(config: Config) -> Decoder:
    return replace(llama_like(config), epsilon=config.real("rms_norm_eps", 1e-5), wide_norms=True)


def _smollm3(config: Config) -> Decoder:
    made = llama_like(config, tied=True)
    turns = config.values.get("no_rope_layers") or [1] * len(made.layers)
    if not isinstance(turns, list) or len(turns) != len(made.layers):
        raise damaged(f"no_rope_layers is no list of {len(made.layers)} numbers")
    layers = (replace(x, rotary=x.rotary if turn else None) for x, turn in zip(made.layers, turns, strict=True))
    return replace(made, layers=tuple(layers))


def _starcoder2(config: Config) -> Decoder:
    activation = config.activation("hidden_act", "gelu_pytorch_tanh")
    epsilon = config.real("norm_epsilon", 1e-5)
    return replace(llama_like(config, tied=True), rms=False, gated=False, activation=activation, epsilon=epsilon)


def _stablelm(config: Config) -> Decoder:
    parallel = config.flag("use_parallel_residual")
    made = replace(llama_like(config), rms=False, parallel=parallel, epsilon=config.real("layer_norm_eps", 1e-5))
    return partly_turned(config, made, 0.25)


FAMILIES = (
    Family(("granite",), _granite),
    Family(("olmo2",), _olmo2, _OLMO2),
    Family(("smollm3",), _smollm3),
    Family(("starcoder2",), _starcoder2, _STARCODER2),
    Family(("stablelm",), _stablelm),
)
