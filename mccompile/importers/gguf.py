"""GGUF files, the weights of language models for llama.cpp."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

from .api import Importer, Reading, Source
from .decoders import gguf_file
from .decoders.config import Config, damaged, errors_named, unsupported
from .decoders.families import FAMILIES
from .decoders.family import FULL, SLIDING, Family, described
from .decoders.fixed_states import Recurrent
from .decoders.told import Told
from .decoders.weights import Blocks, Weight

_WORDS = {  # of config.json, by what GGUF calls it behind the architecture
    "context_length": ("max_position_embeddings", "n_positions"),
    "embedding_length": ("hidden_size", "n_embd"),
    "block_count": ("num_hidden_layers", "n_layer"),
    "feed_forward_length": ("intermediate_size", "n_inner"),
    "attention.head_count": ("num_attention_heads", "n_head"),
    "attention.head_count_kv": ("num_key_value_heads", "num_kv_heads"),
    "attention.key_length": ("head_dim",),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
    "attention.layer_norm_epsilon": ("layer_norm_eps", "layer_norm_epsilon", "norm_eps", "norm_epsilon"),
    "attention.sliding_window": ("sliding_window",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "rope.freq_base": ("rope_theta", "rotary_emb_base"),
    "use_parallel_residual": ("use_parallel_residual",),
    "embedding_scale": ("embedding_multiplier",),
    "residual_scale": ("residual_multiplier",),
    "attention.scale": ("attention_multiplier",),
    "logit_scale": ("logits_scaling", "logit_scale"),
    "expert_count": ("num_experts", "num_local_experts"),
    "expert_used_count": ("num_experts_per_tok",),
    "expert_feed_forward_length": ("moe_intermediate_size",),
    "expert_shared_feed_forward_length": ("shared_expert_intermediate_size",),
}
_ROPE, _SHORT = "rope.scaling.", "rope_factors_short.weight"
_FACTORS: dict[str, tuple[str, ...]] = {
    "embedding_scale": ("granite",),
    "residual_scale": ("granite",),
    "attention.scale": ("granite",),
}
_FACTORS |= {"logit_scale": ("granite", "command-r", "cohere2")}
_FACTORS |= {"expert_count": ("llama", "qwen2moe", "qwen3moe", "olmoe")}
_DEFAULTS: dict[str, dict[str, float]] = {  # of llama.cpp, where they are not those of config.json
    "gemma2": {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0},
    "granite": {"attention_multiplier": 0.0},
    "command-r": {"logit_scale": 1.0},
}
_OTHER = (
    "attention.alibi_bias_max",
    "attention.clamp_kqv",
    "attention.temperature_scale",
    "expert_group_count",
    "expert_weights_scale",
    "leading_dense_block_count",
)


class GGUF(Importer):
    what = "a GGUF file, a language model for llama.cpp"
    extra = ""
    needs = ()
    suffixes = (".gguf",)
    has_sizes = True

    def opens(self, source: Source) -> bool:
        return source.data.startswith(gguf_file.MAGIC)

    def read(self, source: Source, reading: Reading) -> ModelProto:
        with errors_named(source.path):
            said, tensors = gguf_file.read(source.data)
            family, config = _config(said, tensors)
            return described(family, config, tensors, source.path.stem or "model", reading.dims, gguf=True)


def _config(said: Mapping[str, Any], tensors: Mapping[str, Weight]) -> tuple[Family, Config]:
    kind = said.get("general.architecture")
    families = [family for family in FAMILIES if kind in family.architectures]
    if not families:
        known = ", ".join(sorted({name for family in FAMILIES for name in family.architectures}))
        raise unsupported(f"general.architecture is {str(kind)[:60]!r}; what is known: {known}")
    unread = (*_OTHER, *(name for name, families in _FACTORS.items() if kind not in families))
    for name in unread:
        if said.get(f"{kind}.{name}"):
            raise unsupported(f"{kind}.{name} is {str(said[f'{kind}.{name}'])[:20]}")
    if said.get(f"{kind}.attention.causal", True) is not True:
        raise unsupported("attention to what comes later")
    values: dict[str, Any] = {"tie_word_embeddings": "output.weight" not in tensors, "rope_theta": 10000.0}
    values |= _DEFAULTS.get(str(kind), {})
    for name, words in _WORDS.items():
        if f"{kind}.{name}" in said:
            values |= dict.fromkeys(words, said[f"{kind}.{name}"])
    table = tensors.get("token_embd.weight")
    if table is None:
        raise damaged("there is no tensor token_embd.weight")
    values["vocab_size"] = table.shape[0]
    own = {name.removeprefix(f"{kind}."): value for name, value in said.items() if name.startswith(f"{kind}.")}
    if families[0].attends:
        _add_attention(values, said, str(kind), tensors)
    _add_own(values, families[0], own, tensors)
    config = Config(values)
    family = next(family for family in families if family.applies(config))
    _check_turned(family, config, said.get(f"{kind}.rope.dimension_count"))
    return family, config


def _add_attention(values: dict[str, Any], said: Mapping[str, Any], kind: str, tensors: Mapping[str, Weight]) -> None:
    config = Config(values)
    # A family may have its own where config.json does not say; llama.cpp has one for all.
    values.setdefault("head_dim", max(1, config.count("hidden_size") // config.count("num_attention_heads")))
    _add_rotary(values, said, kind, tensors)


def _check_turned(family: Family, config: Config, turned: object) -> None:
    """Rotary embeddings go over as many channels as the file says."""
    made = family.made(config)
    for layer in () if isinstance(made, Recurrent) else made.layers:
        if turned is not None and layer.rotary and 2 * len(layer.rotary.frequencies) != turned:
            raise unsupported(f"rotary embeddings of {str(turned)[:20]} channels of a head")


def _add_rotary(values: dict[str, Any], said: Mapping[str, Any], kind: str, tensors: Mapping[str, Weight]) -> None:
    head = Config(values).count("head_dim")
    turned = Config({"rope.dimension_count": said.get(f"{kind}.rope.dimension_count")}).count(
        "rope.dimension_count", head
    )  # fmt: skip
    if turned > head:
        raise unsupported(f"rotary embeddings of {turned} of {head} channels")
    values["partial_rotary_factor"] = values["rotary_pct"] = (turned + 0.5) / head  # of which families take the floor
    values["rope_scaling"] = _scaling(said, kind, tensors)
    if "rope_freqs.weight" in tensors:
        values["rope_factors"] = _floats(tensors["rope_freqs.weight"])


def _floats(weight: Weight) -> np.ndarray:
    return weight.value.floats if isinstance(weight.value, Blocks) else np.asarray(weight.value)


def _scaling(said: Mapping[str, Any], kind: str, tensors: Mapping[str, Weight]) -> dict[str, Any]:
    """In the words of config.json."""
    told = {name.removeprefix(f"{kind}.{_ROPE}"): value for name, value in said.items() if f"{kind}.{_ROPE}" in name}
    way, factor, length = told.pop("type", "linear"), told.pop("factor", 0), told.pop("original_context_length", None)
    factor = factor or said.get(f"{kind}.rope.scale_linear", 0)
    told.pop("finetuned", None)
    size, whole = (Config(told).real(name, 0.0) for name in ("attn_factor", "yarn_attn_factor"))
    told = {name: value for name, value in told.items() if name not in ("attn_factor", "yarn_attn_factor")}
    made = {"rope_type": way, "original_max_position_embeddings": length} if length else {"rope_type": way}
    if _SHORT in tensors:
        made |= {"rope_type": "longrope", "short_factor": _floats(tensors[_SHORT]).reshape(-1).tolist()}
        return made | {"attention_factor": size or 1.0}
    if way == "yarn":
        factor = factor or 1.0
        made |= {
            "factor": factor,
            "beta_fast": told.pop("yarn_beta_fast", None),
            "beta_slow": told.pop("yarn_beta_slow", None),
        }
        times = Config({"factor": factor}).real("factor")
        usual = 1 + 0.1 * math.log(times) if times > 1 else 1.0  # beside which attn_factor is another one
        made |= {"attention_factor": whole or size * usual} if whole or size else {}
    elif way not in ("none", "linear") or {size, whole} - {0, 1}:
        raise unsupported(f"rotary embeddings are scaled by the way {str(way)[:20]!r}, cosines by {size or whole}")
    elif way == "linear" and factor:
        made["factor"] = factor
    if any(told.values()):
        raise unsupported(f"{kind}.{_ROPE}{next(name for name, value in told.items() if value)}")
    return made if way in ("yarn", "linear") and factor else {}


def _add_own(values: dict[str, Any], family: Family, said: Mapping[str, Any], tensors: Mapping[str, Weight]) -> None:
    """What llama.cpp takes by itself. `said`: by keys behind the architecture."""
    near = said.get("attention.sliding_window_pattern")
    if isinstance(near, list):
        values["layer_types"] = [SLIDING if each else FULL for each in near]
    values |= family.own(Told(values, said, tensors))
