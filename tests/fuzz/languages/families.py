"""Folders of Hugging Face in the forms of several families, with what the reference is told of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random import Generator

from mccompile.importers.decoders.families.gemma import NAMES as GEMMA
from mccompile.importers.decoders.families.gpt import GPT2_NAMES
from mccompile.importers.decoders.family import LLAMA_NAMES
from tests.importers.decoders.files import LLAMA, named
from tests.importers.decoders.reference import random_weights, with_experts

Weights = dict[str, np.ndarray]
Form = tuple[
    dict[str, Any], Weights, Weights, dict[str, Any]
]  # config, tensors by name, weights by role, of the reference
CONTEXT = 64


def _config(kind: str, sizes: dict[str, int], weights: Weights) -> dict[str, Any]:
    made = {**LLAMA, "model_type": kind, "tie_word_embeddings": "head" not in weights, "head_dim": sizes["head"]}
    made |= {"vocab_size": sizes["vocabulary"], "hidden_size": sizes["width"], "intermediate_size": sizes["hidden"]}
    made |= {"num_attention_heads": sizes["heads"], "num_key_value_heads": sizes["groups"]}
    return made | {"num_hidden_layers": sizes["layers"], "max_position_embeddings": CONTEXT}


def _weights(chance: Generator, sizes: dict[str, int], tied: float = 0.5) -> Weights:
    weights = random_weights(sizes, chance)
    return weights if chance.random() < tied else {**weights, "head": weights["embed"][::-1].copy()}


def _llama(chance: Generator, sizes: dict[str, int]) -> Form:
    weights, window = _weights(chance, sizes), int(chance.integers(0, 9))
    config = _config("mistral" if window else "llama", sizes, weights) | ({"sliding_window": window} if window else {})
    how = {"windows": dict.fromkeys(range(sizes["layers"]), window)} if window else {}
    return config, named(weights, LLAMA_NAMES), weights, how


def _qwen3(chance: Generator, sizes: dict[str, int]) -> Form:
    weights = _weights(chance, sizes)
    for number in range(sizes["layers"]):
        for role in ("q_norm", "k_norm"):
            weights[f"{number}.{role}"] = chance.uniform(0.5, 1.5, sizes["head"]).astype(np.float32)
    return _config("qwen3", sizes, weights), named(weights, LLAMA_NAMES), weights, {}


def _gemma2(chance: Generator, sizes: dict[str, int]) -> Form:
    weights, window = _weights(chance, sizes, tied=1.0), int(chance.integers(1, 9))
    for number in range(sizes["layers"]):
        for role in ("attn_post_norm", "mlp_post_norm"):
            weights[f"{number}.{role}"] = chance.uniform(0.5, 1.5, sizes["width"]).astype(np.float32)
    stored = {role: array - 1 if "norm" in role else array for role, array in weights.items()}
    caps = [float(chance.choice([0, 3, 20])) for _ in range(2)]
    config = _config("gemma2", sizes, weights) | {"query_pre_attn_scalar": 20, "sliding_window": window}
    config |= {"attn_logit_softcapping": caps[0] or None, "final_logit_softcapping": caps[1] or None}
    how = {"score_cap": caps[0], "logit_cap": caps[1], "factor": 20**-0.5}
    how |= {"embedding": float(np.float32(sizes["width"] ** 0.5)), "windows": dict.fromkeys(range(0, 9, 2), window)}
    return config, named(stored, GEMMA), weights, how


def _phi3(chance: Generator, sizes: dict[str, int]) -> Form:
    weights = _weights(chance, sizes)
    stored = dict(weights)
    for number in range(sizes["layers"]):
        stored[f"{number}.qkv"] = np.concatenate([stored.pop(f"{number}.{side}") for side in "qkv"])
        stored[f"{number}.gate_up"] = np.concatenate([stored.pop(f"{number}.{side}") for side in ("gate", "up")])
    names = {**LLAMA_NAMES, "qkv": "model.layers.{}.self_attn.qkv_proj", "gate_up": "model.layers.{}.mlp.gate_up_proj"}
    turned = 2 * int(chance.integers(1, sizes["head"] // 2 + 1))
    config = _config("phi3", sizes, weights) | {"partial_rotary_factor": turned / sizes["head"]}
    return config, named(stored, names), weights, {"turned": turned}


def _gpt2(chance: Generator, sizes: dict[str, int]) -> Form:
    sizes |= {"groups": sizes["heads"], "width": sizes["heads"] * sizes["head"]}
    weights = random_weights(sizes, chance, gpt=True)
    weights["positions"] = chance.standard_normal((CONTEXT, sizes["width"])).astype(np.float32)
    stored = {role: array.T if array.ndim == 2 and role[0].isdigit() else array for role, array in weights.items()}
    for number in range(sizes["layers"]):
        for kind, axis in (("", 1), (".bias", 0)):
            stored[f"{number}.qkv{kind}"] = np.concatenate([stored.pop(f"{number}.{s}{kind}") for s in "qkv"], axis)
    config = {"model_type": "gpt2", "vocab_size": sizes["vocabulary"], "n_embd": sizes["width"]}
    config |= {"n_head": sizes["heads"], "n_layer": sizes["layers"], "n_inner": sizes["hidden"]}
    return config | {"n_positions": CONTEXT}, named(stored, GPT2_NAMES), weights, {"turns": False}


def _mixture(chance: Generator, sizes: dict[str, int]) -> Form:
    count = int(chance.integers(2, 6))
    chosen, among_best = int(chance.integers(1, count + 1)), bool(chance.random() < 0.5)
    weights = with_experts(_weights(chance, sizes), sizes["layers"], count, chance)
    names = {**LLAMA_NAMES, "router": "model.layers.{}.mlp.gate", "expert": "model.layers.{}.mlp.experts"}
    is_mixtral = chance.random() < 0.5
    if is_mixtral:
        config = _config("mixtral", sizes, weights) | {"num_local_experts": count, "rope_theta": 10000.0}
        among_best = True
    else:
        config = _config("qwen3_moe", sizes, weights) | {"num_experts": count, "norm_topk_prob": among_best}
        config |= {"moe_intermediate_size": sizes["hidden"]}
        for number in range(sizes["layers"]):
            for role in ("q_norm", "k_norm"):
                weights[f"{number}.{role}"] = chance.uniform(0.5, 1.5, sizes["head"]).astype(np.float32)
    tensors = {}
    for name, array in named(weights, names).items():
        full = f"{name}_proj.weight" if ".experts." in name else name
        for old, new in _MIXTRAL.items() if is_mixtral else ():
            full = full.replace(old, new)
        tensors[full] = array
    return (
        config | {"num_experts_per_tok": chosen},
        tensors,
        weights,
        {"experts": {"chosen": chosen, "among_best": among_best}},
    )


_MIXTRAL = {".mlp.": ".block_sparse_moe.", ".gate_proj": ".w1", ".down_proj": ".w2", ".up_proj": ".w3"}
DRAWN: tuple[Callable[[Generator, dict[str, int]], Form], ...] = (_llama, _qwen3, _gemma2, _phi3, _gpt2, _mixture)
