"""GPT-2 and GPT-BigCode (StarCoder), with positions in a table, and GPT-NeoX (Pythia), whose attention and MLP may read
the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..config import Config
from ..description import Decoder, Layer
from ..family import Family, by_groups, partly_turned, thirds
from ..told import Told

GPT2_NAMES = {
    "embed": "transformer.wte",
    "positions": "transformer.wpe",
    "final_norm": "transformer.ln_f",
    "head": "lm_head",
    "attn_norm": "transformer.h.{}.ln_1",
    "qkv": "transformer.h.{}.attn.c_attn",
    "o": "transformer.h.{}.attn.c_proj",
    "mlp_norm": "transformer.h.{}.ln_2",
    "up": "transformer.h.{}.mlp.c_fc",
    "down": "transformer.h.{}.mlp.c_proj",
}
_NEOX = {
    "embed": "gpt_neox.embed_in",
    "final_norm": "gpt_neox.final_layer_norm",
    "head": "embed_out",
    "attn_norm": "gpt_neox.layers.{}.input_layernorm",
    "qkv": "gpt_neox.layers.{}.attention.query_key_value",
    "o": "gpt_neox.layers.{}.attention.dense",
    "mlp_norm": "gpt_neox.layers.{}.post_attention_layernorm",
    "up": "gpt_neox.layers.{}.mlp.dense_h_to_4h",
    "down": "gpt_neox.layers.{}.mlp.dense_4h_to_h",
}


def _gpt2(config: Config) -> Decoder:
    count, is_by_layer = config.count("n_layer"), config.flag("scale_attn_by_inverse_layer_idx")
    layers = tuple(Layer(score_factor=1 / (n + 1) if is_by_layer else 1.0) for n in range(min(count, 4096)))
    width, heads = config.count("n_embd"), config.count("n_head")
    return Decoder(
        vocabulary=config.count("vocab_size"),
        width=width,
        heads=heads,
        groups=heads,
        head=max(1, width // heads),
        hidden=config.count("n_inner", 4 * width),
        context=config.count("n_positions"),
        layers=layers,
        score_factor=0.0 if config.flag("scale_attn_weights", True) else 1.0,
        epsilon=config.real("layer_norm_epsilon", 1e-5),
        rms=False,
        activation=config.activation("activation_function", "gelu_new"),
        gated=False,
        learned=True,
        tied=config.flag("tie_word_embeddings", True),
    )


def _bigcode(config: Config) -> Decoder:
    own = {**config.values, "scale_attn_by_inverse_layer_idx": False}  # which this family does not do
    made = _gpt2(Config(own).filled(activation_function="gelu_pytorch_tanh"))
    return replace(made, groups=1 if config.flag("multi_query", True) else made.heads)


def _bigcode_rows(decoder: Decoder) -> dict[str, np.ndarray]:
    return thirds(decoder) if decoder.groups == 1 else by_groups(decoder)


def _neox(config: Config) -> Decoder:
    own = {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"}  # what the usual names say is unused
    config = Config({**config.values, **{name: config.values.get(word) for name, word in own.items()}})
    made = partly_turned(config, 0.25)
    return replace(
        made,
        groups=made.heads,
        rms=False,
        gated=False,
        epsilon=config.real("layer_norm_eps", 1e-5),
        activation=config.activation("hidden_act", "gelu"),
        parallel=config.flag("use_parallel_residual", True),
    )


def _bigcode_gguf(told: Told) -> dict[str, Any]:
    return {"multi_query": told.values.get("num_key_value_heads") == 1}


def _neox_gguf(told: Told) -> dict[str, Any]:
    return {"hidden_act": "gelu"}


FAMILIES = (
    Family(("gpt2",), _gpt2, GPT2_NAMES, architectures=("gpt2",), turned=True),
    Family(
        ("gpt_bigcode",), _bigcode, GPT2_NAMES, architectures=("starcoder",), split=_bigcode_rows, own=_bigcode_gguf
    ),
    Family(("gpt_neox",), _neox, _NEOX, architectures=("gptneox",), split=by_groups, own=_neox_gguf),
)
