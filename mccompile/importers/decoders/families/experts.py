"""Mixtures of experts: Mixtral, OLMoE, Qwen2 and Qwen3."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..config import Config, damaged, unsupported
from ..description import Decoder, Experts
from ..family import LLAMA_NAMES, Family, llama_like, windowed
from ..told import no_window
from .qwen import qwen

_PLAIN = {role: name for role, name in LLAMA_NAMES.items() if role not in ("gate", "up", "down")}
_BLOCK = "model.layers.{}.block_sparse_moe"
_MIXTRAL = {
    **_PLAIN,
    "router": f"{_BLOCK}.gate",
    "expert_gate": f"{_BLOCK}.experts.{{}}.w1",
    "expert_up": f"{_BLOCK}.experts.{{}}.w3",
    "expert_down": f"{_BLOCK}.experts.{{}}.w2",
}
_MLP = "model.layers.{}.mlp"
_EXPERTS = {
    **LLAMA_NAMES,  # layers may be without experts
    "router": f"{_MLP}.gate",
    **{f"expert_{part}": f"{_MLP}.experts.{{}}.{part}_proj" for part in ("gate", "up", "down")},
    **{f"shared_{part}": f"{_MLP}.shared_expert.{part}_proj" for part in ("gate", "up", "down")},
    "shared_router": f"{_MLP}.shared_expert_gate",
}


def _mixed(config: Config, made: Decoder, experts: Experts) -> Decoder:
    if experts.chosen > experts.count:
        raise damaged(f"{experts.chosen} of {experts.count} experts are chosen")
    every, plain = config.count("decoder_sparse_step", 1), config.values.get("mlp_only_layers") or ()
    if not isinstance(plain, list | tuple):
        raise damaged("mlp_only_layers is not a list")
    mixed = [number not in plain and (number + 1) % every == 0 for number in range(len(made.layers))]
    layers = (replace(x, experts=experts if m else None) for x, m in zip(made.layers, mixed, strict=True))
    return replace(made, layers=tuple(layers))


def _mixtral(config: Config) -> Decoder:
    count, hidden = config.count("num_local_experts", 8), config.count("intermediate_size")
    config = config.filled(rms_norm_eps=1e-5, rope_theta=1e6)
    made = windowed(config, llama_like(config))
    return _mixed(config, made, Experts(count, config.count("num_experts_per_tok", 2), hidden))


def _olmoe(config: Config) -> Decoder:
    if config.has("clip_qkv"):
        raise unsupported("queries, keys and values are clipped (clip_qkv)")
    made = replace(llama_like(config), epsilon=config.real("rms_norm_eps", 1e-5), wide_norms=True)
    count, chosen = config.count("num_experts", 64), config.count("num_experts_per_tok", 8)
    experts = Experts(count, chosen, config.count("intermediate_size"), config.flag("norm_topk_prob"))
    return _mixed(config, made, experts)


def _qwen_of(count: int, chosen: int, hidden: int, among_best: bool, shared: int) -> Callable[[Config], Decoder]:
    """What the file leaves out is as given."""

    def describe(config: Config) -> Decoder:
        many = config.count("num_experts", config.count("num_local_experts", count))
        experts = Experts(
            many,
            config.count("num_experts_per_tok", chosen),
            config.count("moe_intermediate_size", hidden),
            config.flag("norm_topk_prob", among_best),
            config.count("shared_expert_intermediate_size", shared) if shared else 0,
        )
        filled = config.filled(intermediate_size=experts.hidden)
        return _mixed(config, qwen(filled), experts)

    return describe


FAMILIES = (
    Family(
        ("mixtral",),
        _mixtral,
        _MIXTRAL,
        architectures=("llama",),
        pairs=True,
        own=no_window,
        context=131072,
    ),
    Family(("olmoe",), _olmoe, _EXPERTS, architectures=("olmoe",), context=4096),
    Family(
        ("qwen2_moe",),
        _qwen_of(60, 4, 1408, False, 5632),
        _EXPERTS,
        architectures=("qwen2moe",),
        own=no_window,
        context=32768,
    ),
    Family(
        ("qwen3_moe",),
        _qwen_of(128, 8, 768, False, 0),
        _EXPERTS,
        architectures=("qwen3moe",),
        own=lambda told: {"norm_topk_prob": True, **no_window(told)},
        context=32768,
    ),
)
