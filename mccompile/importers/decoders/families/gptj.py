"""GPT-J, whose turned channels are neighbours; GPT-Neo and OPT with positions in a table."""

from __future__ import annotations

from dataclasses import replace

from ..config import Config, damaged, unsupported
from ..description import Decoder, Layer
from ..family import Family, llama_like
from ..rotary import rotary

_GPTJ = {
    "embed": "transformer.wte",
    "final_norm": "transformer.ln_f",
    "head": "lm_head",
    "attn_norm": "transformer.h.{}.ln_1",
    "q": "transformer.h.{}.attn.q_proj",
    "k": "transformer.h.{}.attn.k_proj",
    "v": "transformer.h.{}.attn.v_proj",
    "o": "transformer.h.{}.attn.out_proj",
    "up": "transformer.h.{}.mlp.fc_in",
    "down": "transformer.h.{}.mlp.fc_out",
}
_NEO = {
    **_GPTJ,
    "positions": "transformer.wpe",
    **{role: f"transformer.h.{{}}.attn.attention.{role}_proj" for role in "qkv"},
    "o": "transformer.h.{}.attn.attention.out_proj",
    "mlp_norm": "transformer.h.{}.ln_2",
    "up": "transformer.h.{}.mlp.c_fc",
    "down": "transformer.h.{}.mlp.c_proj",
}
_OPT = {
    "embed": "model.decoder.embed_tokens",
    "positions": "model.decoder.embed_positions",
    "final_norm": "model.decoder.final_layer_norm",
    "head": "lm_head",
    "attn_norm": "model.decoder.layers.{}.self_attn_layer_norm",
    **{role: f"model.decoder.layers.{{}}.self_attn.{role}_proj" for role in "qkv"},
    "o": "model.decoder.layers.{}.self_attn.out_proj",
    "mlp_norm": "model.decoder.layers.{}.final_layer_norm",
    "up": "model.decoder.layers.{}.fc1",
    "down": "model.decoder.layers.{}.fc2",
}


def _plain(config: Config, activation: str, tied: bool) -> Decoder:
    width = config.count("hidden_size")
    filled = config.filled(intermediate_size=4 * width, hidden_act=activation)
    made = llama_like(filled, tied=tied, share=None)
    return replace(made, rms=False, gated=False, epsilon=config.real("layer_norm_epsilon", 1e-5))


def _gptj(config: Config) -> Decoder:
    names = {"hidden_size": "n_embd", "num_attention_heads": "n_head", "num_hidden_layers": "n_layer"}
    named = config.called(
        **names, max_position_embeddings="n_positions", intermediate_size="n_inner", hidden_act="activation_function"
    )
    made = _plain(named, "gelu_new", tied=False)
    turned = rotary(Config({}), min(config.count("rotary_dim", made.head), made.head))
    return replace(made, parallel=True, layers=tuple(replace(layer, rotary=turned) for layer in made.layers))


def _neo(config: Config) -> Decoder:
    named = config.called(
        num_attention_heads="num_heads", num_hidden_layers="num_layers", hidden_act="activation_function"
    )
    made = _plain(named, "gelu_new", tied=True)
    window = config.count("window_size", 256)
    kinds = config.values.get("attention_layers") or _spread(config)
    if not isinstance(kinds, list) or len(kinds) != len(made.layers) or not {*map(str, kinds)} <= {"global", "local"}:
        raise damaged(f"attention_layers is not a list of {len(made.layers)} words, global or local")
    layers = tuple(Layer(window if kind == "local" else 0) for kind in kinds)
    return replace(made, layers=layers, learned=True, score_factor=1.0)


def _spread(config: Config) -> list[str]:
    """attention_types is [[kinds, how many times], ...]."""
    try:
        parts = config.values.get("attention_types") or [[["global", "local"], 12]]
        return [kind for kinds, times in parts for _ in range(min(times, 4096)) for kind in kinds]
    except (TypeError, ValueError):
        raise damaged("attention_types is not a list of kinds and numbers") from None


def _opt(config: Config) -> Decoder:
    named = config.called(intermediate_size="ffn_dim", hidden_act="activation_function")
    made = _plain(named, "relu", tied=True)
    if not config.flag("do_layer_norm_before", True) or config.flag("_remove_final_layer_norm"):
        raise unsupported("its norms follow attention and MLP")
    if config.count("word_embed_proj_dim", made.width) != made.width:
        raise unsupported("its embedding has another width than its layers")
    if not config.flag("layer_norm_elementwise_affine", True):
        made = replace(made, plain_norms=True)
    layers = (Layer(),) * len(made.layers)
    return replace(made, layers=layers, learned=True, unused_positions=2)


FAMILIES = (
    Family(("gptj",), _gptj, _GPTJ, neighbours=True),
    Family(("gpt_neo",), _neo, _NEO),
    Family(("opt",), _opt, _OPT),
)
