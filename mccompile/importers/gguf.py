"""GGUF files, the weights of language models for llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto

from .api import Importer, Reading, Source
from .decoders import gguf_file
from .decoders.config import Config, damaged, errors_named, unsupported
from .decoders.families import FAMILIES
from .decoders.family import Family, described
from .decoders.weights import Blocks, Weight

_WORDS = {  # of config.json, by what GGUF calls it behind the architecture
    "context_length": ("max_position_embeddings", "n_positions"),
    "embedding_length": ("hidden_size", "n_embd"),
    "block_count": ("num_hidden_layers", "n_layer"),
    "feed_forward_length": ("intermediate_size", "n_inner"),
    "attention.head_count": ("num_attention_heads", "n_head"),
    "attention.head_count_kv": ("num_key_value_heads",),
    "attention.key_length": ("head_dim",),
    "attention.layer_norm_rms_epsilon": ("rms_norm_eps",),
    "attention.layer_norm_epsilon": ("layer_norm_eps", "layer_norm_epsilon"),
    "attention.sliding_window": ("sliding_window",),
    "attn_logit_softcapping": ("attn_logit_softcapping",),
    "final_logit_softcapping": ("final_logit_softcapping",),
    "rope.freq_base": ("rope_theta",),
    "use_parallel_residual": ("use_parallel_residual",),
}
_ROPE = "rope.scaling."
_OTHER = (".expert_count", ".rope.scaling.attn_factor", ".attention.alibi_bias_max", ".logit_scale", ".residual_scale")


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
    family = next((family for family in FAMILIES if kind in family.architectures), None)
    if family is None:
        known = ", ".join(sorted(name for family in FAMILIES for name in family.architectures))
        raise unsupported(f"general.architecture is {str(kind)[:60]!r}; what is known: {known}")
    for name in _OTHER:
        if said.get(f"{kind}{name}"):
            raise unsupported(f"{kind}{name} is {str(said[f'{kind}{name}'])[:20]}")
    if said.get(f"{kind}.attention.causal", True) is not True:
        raise unsupported("attention to what comes later")
    values: dict[str, Any] = {"tie_word_embeddings": "output.weight" not in tensors}
    for name, words in _WORDS.items():
        if f"{kind}.{name}" in said:
            values |= dict.fromkeys(words, said[f"{kind}.{name}"])
    table = tensors.get("token_embd.weight")
    if table is None:
        raise damaged("there is no tensor token_embd.weight")
    values["vocab_size"] = table.shape[0]
    _add_rotary(values, said, str(kind), tensors)
    _add_own(values, said, str(kind))
    return family, Config(values)


def _add_rotary(values: dict[str, Any], said: Mapping[str, Any], kind: str, tensors: Mapping[str, Weight]) -> None:
    config = Config(values)
    turned = said.get(f"{kind}.rope.dimension_count")
    if turned is not None:
        head = config.count("head_dim", max(1, config.count("hidden_size") // config.count("num_attention_heads")))
        share = Config({"rope.dimension_count": turned}).count("rope.dimension_count") / head
        if share > 1 or (share < 1 and kind not in ("gptneox", "phi3")):
            raise unsupported(f"rotary embeddings of {turned} of {head} channels")
        values["partial_rotary_factor"] = share
    way = said.get(f"{kind}.{_ROPE}type", "none")
    if way not in ("none", "linear"):
        raise unsupported(f"rotary embeddings are scaled by the way {str(way)[:20]!r}")
    factor = said.get(f"{kind}.{_ROPE}factor")
    if way == "linear" and factor:
        values["rope_scaling"] = {"rope_type": "linear", "factor": factor}
    if any(name.startswith(("rope_factors", "blk.0.rope_factors")) for name in tensors):
        raise unsupported("rotary embeddings with factors for short and long texts")
    if "rope_freqs.weight" in tensors:
        factors = tensors["rope_freqs.weight"].value
        values["rope_factors"] = factors.floats if isinstance(factors, Blocks) else np.asarray(factors)


def _add_own(values: dict[str, Any], said: Mapping[str, Any], kind: str) -> None:
    """What llama.cpp takes by itself."""
    layers = Config(values).count("num_hidden_layers")
    if kind in ("llama", "qwen2", "qwen3", "phi3", "gemma"):
        values.pop("sliding_window", None)
    if kind in ("gemma2", "gemma3"):  # the factor of scores is that of the head, but in the largest models
        large = {"gemma2": 46, "gemma3": 62}[kind] == layers
        head = Config(values).count("head_dim")
        wide = Config(values).count("hidden_size") // Config(values).count("num_attention_heads")
        values["query_pre_attn_scalar"] = wide if large else head
    if kind == "gemma3":
        scaling = values.pop("rope_scaling", None) or {"rope_type": "default"}
        values["rope_parameters"] = {
            "full_attention": {"rope_theta": values.get("rope_theta", 1e6), **scaling},
            "sliding_attention": {"rope_theta": said.get(f"{kind}.rope.freq_base_swa", 10000.0)},
        }
    if kind == "gptneox":
        values["hidden_act"] = "gelu"
