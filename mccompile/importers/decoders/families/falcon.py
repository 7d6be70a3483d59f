"""Falcon: attention and MLP side by side or not, one head of keys, some or all, rotary embeddings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..config import Config, unsupported
from ..description import Decoder
from ..family import Family, by_groups, llama_like
from ..told import Told

_NAMES = {
    "embed": "transformer.word_embeddings",
    "final_norm": "transformer.ln_f",
    "head": "lm_head",
    "attn_norm": "transformer.h.{}.input_layernorm",
    "qkv": "transformer.h.{}.self_attention.query_key_value",
    "o": "transformer.h.{}.self_attention.dense",
    "mlp_norm": "transformer.h.{}.post_attention_layernorm",
    "up": "transformer.h.{}.mlp.dense_h_to_4h",
    "down": "transformer.h.{}.mlp.dense_4h_to_h",
}
_TWO_NORMS = {**_NAMES, "attn_norm": "transformer.h.{}.ln_attn", "mlp_norm": "transformer.h.{}.ln_mlp"}
_GGUF_NORMS = {"attn_norm": "blk.{}.attn_norm_2", "mlp_norm": "blk.{}.attn_norm"}


def _falcon(config: Config) -> Decoder:
    if config.flag("alibi"):
        raise unsupported("alibi with slopes in bfloat16")
    named = config.called(num_hidden_layers="n_layer", num_attention_heads="n_head")
    heads, width = named.count("num_attention_heads"), config.count("hidden_size")
    is_new = config.flag("new_decoder_architecture")
    made = replace(
        llama_like(named.filled(intermediate_size=config.count("ffn_hidden_size", 4 * width)), tied=True),
        rms=False,
        gated=False,
        parallel=is_new or config.flag("parallel_attn", True),
        epsilon=config.real("layer_norm_epsilon", 1e-5),
        activation=config.activation("activation", "gelu"),
    )
    if is_new:
        return replace(made, groups=config.count("num_kv_heads", heads))
    return replace(made, groups=1 if config.flag("multi_query", True) else heads)


def _has_two_norms(config: Config) -> bool:
    is_new = config.flag("new_decoder_architecture")
    return is_new and config.count("num_ln_in_parallel_attn", 2) == 2


def _gguf(told: Told) -> dict[str, Any]:
    norms = 2 if "blk.0.attn_norm_2.weight" in told.tensors else 1
    return {"new_decoder_architecture": True, "num_ln_in_parallel_attn": norms}


FAMILIES = (
    Family(
        ("falcon",),
        _falcon,
        _TWO_NORMS,
        split=by_groups,
        applies=_has_two_norms,
        architectures=("falcon",),
        gguf_names=_GGUF_NORMS,
        own=_gguf,
    ),
    Family(("falcon",), _falcon, _NAMES, split=by_groups, architectures=("falcon",)),
)
