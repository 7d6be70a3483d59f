"""Variations of Llama: Arcee, ERNIE 4.5, EXAONE 4, Granite, Helium, Hunyuan, OLMo, SmolLM 3, StarCoder 2, StableLM."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..config import Config, damaged, unsupported
from ..description import Decoder
from ..family import FULL, LLAMA_NAMES, SLIDING, Family, llama_like, partly_turned, turned_by_kind, windowed
from ..told import Told, no_window

_OLMO2 = {
    **{role: name for role, name in LLAMA_NAMES.items() if role not in ("attn_norm", "mlp_norm")},
    "attn_post_norm": "model.layers.{}.post_attention_layernorm",
    "mlp_post_norm": "model.layers.{}.post_feedforward_layernorm",
}
_HUNYUAN = {
    **LLAMA_NAMES,
    "q_norm": "model.layers.{}.self_attn.query_layernorm",
    "k_norm": "model.layers.{}.self_attn.key_layernorm",
}
_STABLELM = {
    **LLAMA_NAMES,
    "q_norm": "model.layers.{}.self_attn.q_layernorm",
    "k_norm": "model.layers.{}.self_attn.k_layernorm",
}
_STARCODER2 = {
    **{role: name for role, name in LLAMA_NAMES.items() if role != "gate"},
    "up": "model.layers.{}.mlp.c_fc",
    "down": "model.layers.{}.mlp.c_proj",
}
_EXAONE4_WINDOW = 4096  # where config.json says nothing of it; with null there is none


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


def _arcee(config: Config) -> Decoder:
    made = llama_like(config.filled(hidden_act="relu2"))
    return replace(made, gated=False, epsilon=config.real("rms_norm_eps", 1e-5))


def _exaone4(config: Config) -> Decoder:
    """Layers that look at all tokens know no positions where others have a window."""
    made = replace(llama_like(config), epsilon=config.real("rms_norm_eps", 1e-5))
    if config.values.get("sliding_window", _EXAONE4_WINDOW) is None:
        return made
    made = windowed(config.filled(sliding_window=_EXAONE4_WINDOW), made, 4)
    return replace(made, layers=tuple(replace(x, rotary=x.rotary if x.window else None) for x in made.layers))


def _wide_heads(config: Config, base: float = 10000.0, tied: bool = False) -> Decoder:
    """With heads of 128 channels where the file does not say."""
    return llama_like(config.filled(head_dim=128), tied, base)


def _ernie(config: Config) -> Decoder:
    return replace(_wide_heads(config, 500000.0, tied=True), epsilon=config.real("rms_norm_eps", 1e-5))


def _helium(config: Config) -> Decoder:
    return replace(_wide_heads(config, 100000.0), epsilon=config.real("rms_norm_eps", 1e-8))


def _hunyuan(config: Config) -> Decoder:
    made = replace(llama_like(config), epsilon=config.real("rms_norm_eps", 1e-5), late_norms=True)
    if config.part("rope_scaling").has("alpha") or config.part("rope_parameters").has("alpha"):
        raise unsupported("rotary embeddings are scaled by alpha")
    return made


def _olmo(config: Config) -> Decoder:
    if config.has("clip_qkv"):
        raise unsupported("queries, keys and values are clipped (clip_qkv)")
    epsilon = config.real("norm_eps", 1e-5)  # of a GGUF file; transformers has 1e-5 whatever config.json says
    return replace(llama_like(config), rms=False, epsilon=epsilon, plain_norms=True)


def _olmo3(config: Config) -> Decoder:
    """Rotary embeddings are scaled only where attention has no window."""
    made = windowed(config.filled(sliding_window=4096), _olmo2(config), 4)
    return turned_by_kind(config, made, {FULL: config.real("rope_theta", 500000.0), SLIDING: 500000.0})


def _olmo2(config: Config) -> Decoder:
    return replace(llama_like(config), epsilon=config.real("rms_norm_eps", 1e-5), wide_norms=True)


def _smollm3(config: Config) -> Decoder:
    made = llama_like(config, tied=True, base=2e6)
    every = config.count("no_rope_layer_interval", 4)
    turns = config.values.get("no_rope_layers") or [(n + 1) % every for n in range(len(made.layers))]
    if not isinstance(turns, list) or len(turns) != len(made.layers):
        raise damaged(f"no_rope_layers is not a list of {len(made.layers)} numbers")
    layers = (replace(x, rotary=x.rotary if turn else None) for x, turn in zip(made.layers, turns, strict=True))
    made = replace(made, layers=tuple(layers))
    if not (config.flag("use_sliding_window") and config.has("sliding_window")):
        return made
    kinds = ["full_attention" if layer.rotary else "sliding_attention" for layer in made.layers]
    return windowed(config.filled(layer_types=kinds), made)


def _starcoder2(config: Config) -> Decoder:
    activation = config.activation("hidden_act", "gelu_pytorch_tanh")
    epsilon = config.real("norm_epsilon", 1e-5)
    made = replace(llama_like(config, tied=True), rms=False, gated=False, activation=activation, epsilon=epsilon)
    return windowed(config, made)


def _stablelm(config: Config) -> Decoder:
    parallel = config.flag("use_parallel_residual")
    epsilon = config.real("layer_norm_eps", 1e-5)
    return replace(partly_turned(config, 0.25), rms=False, parallel=parallel, epsilon=epsilon, norms_by_head=True)


def _exaone4_gguf(told: Told) -> dict[str, Any]:
    return {"sliding_window": told.values.get("sliding_window")}


def _olmo_gguf(told: Told) -> dict[str, Any]:
    """Those of OLMo 3 have windows."""
    if told.values.get("sliding_window") is None:
        return {}
    kinds = [SLIDING if near else FULL for near in told.by_layer(4)]
    return {"layer_types": kinds, **told.values, **told.by_kind(told.values["rope_theta"])}


def _smollm3_gguf(told: Told) -> dict[str, Any]:
    return {"no_rope_layers": [int(turns) for turns in told.by_layer(4)]}


def _stablelm_gguf(told: Told) -> dict[str, Any]:
    return {"use_parallel_residual": "blk.0.ffn_norm.weight" not in told.tensors}


_ARCEE = {role: name for role, name in LLAMA_NAMES.items() if role != "gate"}
_SEED_OSS = {"mlp_norm": "blk.{}.post_attention_norm", "attn_post_norm": ""}

FAMILIES = (
    Family(("arcee",), _arcee, _ARCEE, architectures=("arcee",), pairs=True, context=4096),
    Family(("ernie4_5",), _ernie, architectures=("ernie4_5",), pairs=True, neighbours=True, context=131072),
    Family(("exaone4",), _exaone4, _OLMO2, architectures=("exaone4",), own=_exaone4_gguf),
    Family(("granite",), _granite, architectures=("granite",), pairs=True),
    Family(("helium",), _helium, neighbours=True, context=4096),
    Family(("hunyuan_v1_dense",), _hunyuan, _HUNYUAN, architectures=("hunyuan-dense",)),
    Family(("internlm3",), _wide_heads),
    Family(("olmo",), _olmo, architectures=("olmo",), pairs=True),
    Family(
        ("olmo2",),
        _olmo2,
        _OLMO2,
        architectures=("olmo2",),
        applies=lambda config: not config.has("layer_types"),
        own=_olmo_gguf,
    ),
    Family(("olmo3",), _olmo3, _OLMO2, architectures=("olmo2",)),
    Family(("seed_oss",), _wide_heads, architectures=("seed_oss",), gguf_names=_SEED_OSS, context=524288),
    Family(("smollm3",), _smollm3, architectures=("smollm3",), pairs=True, own=_smollm3_gguf, context=32768),
    Family(("starcoder2",), _starcoder2, _STARCODER2, architectures=("starcoder2",), own=no_window, context=4096),
    Family(("stablelm",), _stablelm, _STABLELM, architectures=("stablelm",), own=_stablelm_gguf, context=4096),
)
