"""GPT-2, with positions in a table, and GPT-NeoX (Pythia), whose attention and MLP may read the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..config import Config, unsupported
from ..description import Decoder, Layer
from ..family import Family, llama_like, partly_turned

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
    if not config.flag("scale_attn_weights", True) or config.flag("scale_attn_by_inverse_layer_idx"):
        raise unsupported("scores whose factor differs from layer to layer")
    width, heads = config.count("n_embd"), config.count("n_head")
    return Decoder(
        vocabulary=config.count("vocab_size"),
        width=width,
        heads=heads,
        groups=heads,
        head=max(1, width // heads),
        hidden=config.count("n_inner", 4 * width),
        context=config.count("n_positions"),
        layers=(Layer(),) * min(config.count("n_layer"), 4096),
        epsilon=config.real("layer_norm_epsilon", 1e-5),
        rms=False,
        activation=config.activation("activation_function", "gelu_new"),
        gated=False,
        learned=True,
        tied=config.flag("tie_word_embeddings", True),
    )


def _neox(config: Config) -> Decoder:
    made = llama_like(config)
    made = replace(
        made,
        groups=made.heads,
        rms=False,
        gated=False,
        epsilon=config.real("layer_norm_eps", 1e-5),
        activation=config.activation("hidden_act", "gelu"),
        parallel=config.flag("use_parallel_residual", True),
    )
    return partly_turned(config, made, 0.25)


def _by_heads(decoder: Decoder) -> dict[str, np.ndarray]:
    """Rows of one matrix: of each head q, k and v."""
    rows = np.arange(3 * decoder.heads * decoder.head).reshape(decoder.heads, 3, decoder.head)
    return {role: rows[:, number].reshape(-1) for number, role in enumerate("qkv")}


FAMILIES = (
    Family(("gpt2",), _gpt2, GPT2_NAMES, architectures=("gpt2",), turned=True),
    Family(("gpt_neox",), _neox, _NEOX, architectures=("gptneox",), split=_by_heads),
)
