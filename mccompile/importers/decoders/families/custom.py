"""InternLM 2 and EXAONE 3: Llama under other names, in files that bring their own code."""

from __future__ import annotations

from dataclasses import replace

from ..config import Config
from ..description import Decoder
from ..family import Family, by_groups, llama_like

_INTERNLM2 = {
    "embed": "model.tok_embeddings",
    "final_norm": "model.norm",
    "head": "output",
    "attn_norm": "model.layers.{}.attention_norm",
    "qkv": "model.layers.{}.attention.wqkv",
    "o": "model.layers.{}.attention.wo",
    "mlp_norm": "model.layers.{}.ffn_norm",
    "gate": "model.layers.{}.feed_forward.w1",
    "up": "model.layers.{}.feed_forward.w3",
    "down": "model.layers.{}.feed_forward.w2",
}
_EXAONE = {
    "embed": "transformer.wte",
    "final_norm": "transformer.ln_f",
    "head": "lm_head",
    "attn_norm": "transformer.h.{}.ln_1",
    **{role: f"transformer.h.{{}}.attn.attention.{role}_proj" for role in "qkv"},
    "o": "transformer.h.{}.attn.attention.out_proj",
    "mlp_norm": "transformer.h.{}.ln_2",
    "gate": "transformer.h.{}.mlp.c_fc_0",
    "up": "transformer.h.{}.mlp.c_fc_1",
    "down": "transformer.h.{}.mlp.c_proj",
}


def _exaone(config: Config) -> Decoder:
    named = config.called(num_hidden_layers="num_layers", hidden_act="activation_function")
    return replace(llama_like(named), epsilon=config.real("layer_norm_epsilon", config.real("rms_norm_eps", 1e-5)))


FAMILIES = (
    Family(("internlm2",), llama_like, _INTERNLM2, architectures=("internlm2",), pairs=True, split=by_groups),
    Family(("exaone",), _exaone, _EXAONE, architectures=("exaone",)),
)
