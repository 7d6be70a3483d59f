"""Mixtures of experts in GGUF files, and what a run reads of them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.errors import BadFile, UnsupportedModel
from mccompile.driver import Options
from mccompile.driver import compile as compile_model
from mccompile.frontend.load import read_proto

from .files import folder
from .recorded import SHOWN, saved, weights
from .test_families import FAMILIES, evaluated
from .test_gguf import gguf
from .test_gguf_families import neighbours

_ROLES = {
    "embed_tokens": "token_embd", "norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm", "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v",
    "o_proj": "attn_output", "q_norm": "attn_q_norm", "k_norm": "attn_k_norm", "gate": "ffn_gate_inp",
    "shared_expert_gate": "ffn_gate_inp_shexp",
}  # fmt: skip
_WORDS = {
    "hidden_size": "embedding_length", "num_hidden_layers": "block_count",
    "num_attention_heads": "attention.head_count",
    "intermediate_size": "feed_forward_length", "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length", "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    "num_local_experts": "expert_count", "num_experts": "expert_count", "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
}  # fmt: skip


def _called(name: str) -> str:
    parts = name.split(".")
    if "experts" in parts:  # fused: all of a layer
        return f"blk.{parts[2]}.ffn_{parts[-1].removesuffix('_proj')}_exps.weight"
    role = _ROLES[parts[-2]]
    return f"blk.{parts[2]}.{role}.{parts[-1]}" if "layers" in parts else f"{role}.{parts[-1]}"


@pytest.mark.parametrize(("name", "kind"), [("mixtral", "llama"), ("qwen3_moe", "qwen3moe"), ("olmoe", "olmoe")])
def test_a_gguf_file_has_the_logits_of_transformers(name: str, kind: str, tmp_path: Path) -> None:
    case = FAMILIES[name]
    config, tensors = case["config"], dict[str, np.ndarray]()
    for full, array in weights(case["shapes"]).items():
        if kind == "llama" and full.endswith(("q_proj.weight", "k_proj.weight")):
            array = neighbours(array, config["num_attention_heads" if "q_proj" in full else "num_key_value_heads"])
        if full.endswith("gate_up_proj"):
            halves = np.split(array, 2, 1)
            tensors |= {
                _called(full.replace("gate_up", role)): h for role, h in zip(("gate", "up"), halves, strict=True)
            }
        else:
            tensors[_called(full)] = array
    told = {f"{kind}.{word}": config[own] for own, word in _WORDS.items() if config.get(own) is not None}
    path = tmp_path / "model.gguf"
    stored = {each: ("F32", array.shape, array.astype("<f4").tobytes()) for each, array in tensors.items()}
    told |= {"general.architecture": kind, f"{kind}.rope.freq_base": float(config["rope_parameters"]["rope_theta"])}
    path.write_bytes(gguf(told, stored))
    found = evaluated(path)
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))


def test_experts_that_are_not_chosen_do_not_run(tmp_path: Path) -> None:
    case = FAMILIES["mixtral"]
    source = folder(tmp_path / "model", case["config"], saved(weights(case["shapes"]), "mixtral"))
    code = compile_model(source, Options(dims={"past": (0, 8), "tokens": (1, 1)})).files["model.c"].decode()
    branches = re.findall(r"if \(\*A\(const uint8_t, .*\) != 0u\) {\n *\/\* layer_\d_expert_\d_MatMul", code)
    assert len(branches) == 2 * case["config"]["num_local_experts"]


@pytest.mark.parametrize(
    ("change", "words", "error"),
    [
        ({"num_experts_per_tok": 6}, "6 of 5 experts", BadFile),
        ({"num_local_experts": 4}, r"is \[5, 16\], not \[4, 16\]", BadFile),
        ({"num_local_experts": None, "num_hidden_layers": 1}, r"is \[5, 16\], not \[8, 16\]", BadFile),
        ({"num_hidden_layers": 1}, "weights that its family does not have", UnsupportedModel),
    ],
)
def test_counts_that_are_not_those_of_the_weights_are_refused(
    change: dict[str, Any], words: str, error: type[Exception], tmp_path: Path
) -> None:
    case = FAMILIES["mixtral"]
    tensors = saved(weights(case["shapes"]), "mixtral")
    with pytest.raises(error, match=words):
        read_proto(folder(tmp_path / "model", {**case["config"], **change}, tensors))
