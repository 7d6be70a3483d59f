"""Bloom and MPT: scores fall with the distance, by a slope of each head (ALiBi)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..config import Config, unsupported
from ..description import Decoder, Layer
from ..family import Family, by_groups, llama_like

_BLOOM = {
    "embed": "transformer.word_embeddings",
    "embed_norm": "transformer.word_embeddings_layernorm",
    "final_norm": "transformer.ln_f",
    "head": "lm_head",
    "attn_norm": "transformer.h.{}.input_layernorm",
    "qkv": "transformer.h.{}.self_attention.query_key_value",
    "o": "transformer.h.{}.self_attention.dense",
    "mlp_norm": "transformer.h.{}.post_attention_layernorm",
    "up": "transformer.h.{}.mlp.dense_h_to_4h",
    "down": "transformer.h.{}.mlp.dense_4h_to_h",
}
_MPT = {
    "embed": "transformer.wte",
    "final_norm": "transformer.norm_f",
    "head": "lm_head",
    "attn_norm": "transformer.blocks.{}.norm_1",
    "qkv": "transformer.blocks.{}.attn.Wqkv",
    "o": "transformer.blocks.{}.attn.out_proj",
    "mlp_norm": "transformer.blocks.{}.norm_2",
    "up": "transformer.blocks.{}.ffn.up_proj",
    "down": "transformer.blocks.{}.ffn.down_proj",
}


def slopes(heads: int) -> np.ndarray:
    """Powers of one number; where heads are not a power of two, every other one of twice as many follows."""
    count = 1 << (heads.bit_length() - 1)
    first = 2.0 ** (-8 / count * np.arange(1, count + 1))
    return np.concatenate([first, 2.0 ** (-8 / (2 * count) * np.arange(1, 2 * (heads - count), 2))])


def _of(config: Config, more: int) -> Decoder:
    wide = Config({**config.values, "intermediate_size": more * config.count("hidden_size")})
    made = llama_like(wide, tied=True, share=None)
    epsilon = config.real("layer_norm_epsilon", 1e-5)
    layers = (Layer(),) * len(made.layers)
    return replace(
        made, groups=made.heads, rms=False, gated=False, epsilon=epsilon, layers=layers, slopes=slopes(made.heads)
    )


def _bloom(config: Config) -> Decoder:
    if config.flag("apply_residual_connection_post_layernorm"):
        raise unsupported("apply_residual_connection_post_layernorm adds the result of the norm to that of the layer")
    named = config.called(hidden_size="n_embed", num_attention_heads="n_head", num_hidden_layers="n_layer")
    return replace(_of(named, 4), activation="gelu_tanh")


def _mpt(config: Config) -> Decoder:
    said = config.part("attn_config")
    for each, name in ((said, "clip_qkv"), (config, "logit_scale")):
        if each.has(name):
            raise unsupported(f"{name} is {str(each.values[name])[:20]}")
    named = config.called(
        hidden_size="d_model", num_attention_heads="n_heads", num_hidden_layers="n_layers"
    ).called(max_position_embeddings="max_seq_len")  # fmt: skip
    made = _of(named, config.count("expansion_ratio", 4))
    if said.real("alibi_bias_max", 8.0) != 8:  # transformers takes 8 for it, and llm-foundry what it says
        raise unsupported(f"alibi_bias_max is {said.real('alibi_bias_max'):g}, which transformers computes as 8")
    factor = said.real("softmax_scale", 0.0)
    return replace(made, activation="gelu", score_factor=factor)


FAMILIES = (Family(("bloom",), _bloom, _BLOOM, architectures=("bloom",), split=by_groups), Family(("mpt",), _mpt, _MPT))
