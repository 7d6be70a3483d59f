"""What transformers computes for a small decoder of each family: `python -m tests.importers.decoders.recorded` writes
families.json anew. Weights follow from the names of tensors, so only shapes and some logits are recorded."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

PATH = Path(__file__).parent / "families.json"
VOCABULARY, SHOWN = 61, 6
TOKENS = np.array([(7 * n * n + 3 * n + 1) % VOCABULARY for n in range(12)])
_SAID = ("transformers_version", "architectures", "dtype", "initializer_range", "use_cache", "torch_dtype")

_USUAL: dict[str, Any] = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4}
_USUAL |= {"num_key_value_heads": 2, "max_position_embeddings": 32}
_GPT = {"n_embd": 16, "n_head": 4, "n_layer": 2, "n_positions": 32}
_FALCON = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 32}
_EXPERTS = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 20}
_MAMBA = {"hidden_size": 16, "num_hidden_layers": 2, "state_size": 5}
_ACTIVATIONS = ("gelu_accurate", "gelu_python", "mish", "quick_gelu", "relu6", "sigmoid", "tanh")
_YARN = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 8}
_PART = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 32}
_PART |= {"partial_rotary_factor": 0.75, "short_factor": [1.0, 1.5, 2.0], "long_factor": [2.0, 3.0, 4.0]}
_LONG = {"rope_type": "longrope", "rope_theta": 10000.0, "original_max_position_embeddings": 16}
_LONG |= {"short_factor": [1.0, 1.5], "long_factor": [2.0, 3.0]}

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "arcee": ("arcee", _USUAL),
    "bloom": ("bloom", {"hidden_size": 24, "n_layer": 2, "n_head": 3}),
    "cohere": ("cohere", {**_USUAL, "use_qk_norm": True, "logit_scale": 0.3}),
    "cohere2": ("cohere2", {**_USUAL, "sliding_window": 5, "num_hidden_layers": 4}),
    "ernie4_5": ("ernie4_5", {**_USUAL, "head_dim": 8, "use_bias": True}),
    "exaone4": ("exaone4", {**_USUAL, "sliding_window": 5, "num_hidden_layers": 4}),
    "falcon": ("falcon", _FALCON),
    "falcon with groups": ("falcon", {**_FALCON, "num_kv_heads": 2, "new_decoder_architecture": True}),
    "falcon_mamba": ("falcon_mamba", {**_MAMBA, "mixer_rms_eps": 1e-5}),
    "falcon one by one": ("falcon", {**_FALCON, "parallel_attn": False, "multi_query": False, "bias": True}),
    "glm": ("glm", {**_USUAL, "head_dim": 8}),
    "glm4": ("glm4", {**_USUAL, "head_dim": 8}),
    "gpt2 with an odd number of channels in a head": ("gpt2", {**_GPT, "n_embd": 15, "n_head": 3}),
    "gpt2 by layer": ("gpt2", {**_GPT, "scale_attn_by_inverse_layer_idx": True}),
    "gpt2 unscaled": ("gpt2", {**_GPT, "scale_attn_weights": False}),
    "gpt_bigcode": ("gpt_bigcode", _GPT),
    "gpt_bigcode with heads": ("gpt_bigcode", {**_GPT, "multi_query": False}),
    "gpt_neo": (
        "gpt_neo",
        {"hidden_size": 16, "num_heads": 4, "num_layers": 2, "attention_types": [[["global", "local"], 1]]}
        | {"max_position_embeddings": 32, "window_size": 5},
    ),
    "gptj": ("gptj", {**_GPT, "rotary_dim": 2}),
    "helium": ("helium", {**_USUAL, "head_dim": 4}),
    "hunyuan": ("hunyuan_v1_dense", {**_USUAL, "head_dim": 8}),
    **{f"llama with {act}": ("llama", {**_USUAL, "hidden_act": act}) for act in _ACTIVATIONS},
    "llama with yarn": ("llama", {**_USUAL, "rope_parameters": _YARN}),
    "mamba": ("mamba", {**_MAMBA, "time_step_rank": 3}),
    "mamba with biases": ("mamba", {**_MAMBA, "use_bias": True, "tie_word_embeddings": False}),
    "mamba2": ("mamba2", {**_MAMBA, "num_heads": 8, "head_dim": 4, "n_groups": 2, "tie_word_embeddings": True}),
    "ministral": ("ministral", {**_USUAL, "head_dim": 4, "sliding_window": 5}),
    "mixtral": ("mixtral", {**_USUAL, "num_local_experts": 5, "num_experts_per_tok": 2}),
    "mpt": ("mpt", {"d_model": 24, "n_heads": 3, "n_layers": 2, "max_seq_len": 32}),
    "nemotron": ("nemotron", _USUAL),
    "olmo": ("olmo", _USUAL),
    "opt with an odd number of channels in a head": (
        "opt",
        {"hidden_size": 15, "num_hidden_layers": 2, "num_attention_heads": 3, "ffn_dim": 24}
        | {"max_position_embeddings": 32, "word_embed_proj_dim": 15},
    ),
    "olmo3": ("olmo3", {**_USUAL, "num_hidden_layers": 4, "sliding_window": 5}),
    "olmoe": ("olmoe", {**_USUAL, "num_experts": 6, "num_experts_per_tok": 2}),
    "opt": (
        "opt",
        {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_dim": 24}
        | {"max_position_embeddings": 32, "word_embed_proj_dim": 16},
    ),
    "persimmon": ("persimmon", {**_USUAL, "num_key_value_heads": 4}),
    "phi": ("phi", {**_USUAL, "qk_layernorm": True}),
    "phi3 with longrope of a part of a head": (
        "phi3",
        {**_USUAL, "hidden_size": 32, "max_position_embeddings": 64, "rope_parameters": _PART}
        | {"original_max_position_embeddings": 32},
    ),
    "phi3 with longrope": ("phi3", {**_USUAL, "rope_parameters": _LONG, "original_max_position_embeddings": 16}),
    "qwen2_moe": ("qwen2_moe", {**_USUAL, **_EXPERTS, "shared_expert_intermediate_size": 12, "mlp_only_layers": [1]}),
    "qwen3_moe": ("qwen3_moe", {**_USUAL, **_EXPERTS, "head_dim": 8, "norm_topk_prob": True}),
    "rwkv": ("rwkv", {"hidden_size": 16, "num_hidden_layers": 4, "rescale_every": 2}),
    "seed_oss": ("seed_oss", {**_USUAL, "head_dim": 8}),
    "stablelm with norms of heads": (
        "stablelm",
        {**_USUAL, "qk_layernorm": True, "use_parallel_residual": True}
        | {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}},
    ),
}


def weights(shapes: Mapping[str, list[int]]) -> dict[str, np.ndarray]:
    return {name: _weight(name, tuple(shape)) for name, shape in shapes.items()}


def _weight(name: str, shape: tuple[int, ...]) -> np.ndarray:
    drawn = np.random.default_rng(crc32(name.encode())).uniform(-1, 1, shape).astype(np.float32)
    if "norm" in name or ".ln_" in name:
        return drawn * np.float32(0.3) + np.float32(name.endswith("weight"))
    return drawn * np.float32(2 / np.sqrt(shape[-1]))


def saved(made: Mapping[str, np.ndarray], kind: str) -> dict[str, np.ndarray]:
    """As transformers saves them: experts one by one, and those of Mixtral by other names."""
    found = {}
    for name, array in made.items():
        stem, _, part = name.rpartition(".experts.")
        for number, own in enumerate(array if stem else ()):
            if part == "gate_up_proj":
                found[f"{stem}.experts.{number}.gate_proj.weight"] = own[: len(own) // 2]
                found[f"{stem}.experts.{number}.up_proj.weight"] = own[len(own) // 2 :]
            else:
                found[f"{stem}.experts.{number}.{part}.weight"] = own
        if not stem:
            found[name] = array
    if kind != "mixtral":
        return found
    words = {".mlp.": ".block_sparse_moe.", "gate_proj": "w1", "down_proj": "w2", "up_proj": "w3"}
    for old, new in words.items():
        found = {name.replace(old, new): array for name, array in found.items()}
    return found


def _record(kind: str, said: Mapping[str, Any]) -> dict[str, Any]:
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM

    config = AutoConfig.for_model(
        kind, vocab_size=VOCABULARY, bos_token_id=1, eos_token_id=2, pad_token_id=0, **said
    )  # fmt: skip
    network = AutoModelForCausalLM.from_config(config, attn_implementation="eager").eval().float()
    tied = set(getattr(network, "_tied_weights_keys", None) or ()) if config.tie_word_embeddings else set()
    shapes = {name: list(value.shape) for name, value in network.state_dict().items() if name not in tied}
    network.load_state_dict({name: torch.tensor(w) for name, w in weights(shapes).items()}, strict=False)
    network.tie_weights()
    with torch.no_grad():
        made = network(torch.tensor(TOKENS[None])).logits[0, -1].double().numpy()
    told = {name: value for name, value in config.to_dict().items() if name not in _SAID and value is not None}
    shown = [float(f"{number:.7g}") for number in made[:SHOWN]]
    return {"config": told, "shapes": shapes, "logits": shown, "token": int(made.argmax())}


def main() -> None:
    lines = (f"{json.dumps(name)}: {json.dumps(_record(*case), sort_keys=True)}" for name, case in CASES.items())
    PATH.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
