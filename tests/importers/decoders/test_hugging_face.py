"""Folders of Hugging Face: families compute what their definitions say, damaged files are refused."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import mccompile
from mccompile.base.errors import BadFile, Exit, MccError, UnsupportedModel
from mccompile.frontend.load import read_proto
from mccompile.importers.decoders.families.gemma import NAMES as GEMMA_NAMES
from mccompile.importers.decoders.families.gpt import GPT2_NAMES
from mccompile.importers.decoders.family import LLAMA_NAMES

from .files import LLAMA, SIZES, folder, named
from .reference import logits, random_weights

_COMPILER = shutil.which("tcc") or "cc"
CHANCE = np.random.default_rng(7)
TOKENS = CHANCE.integers(0, 48, 9)


def evaluated(path: Path, tokens: np.ndarray) -> np.ndarray:
    """The logits behind the last token."""
    model = read_proto(path)
    caches = {entry.name: np.zeros((1, 2, 0, 8), np.float32) for entry in model.graph.input[1:]}
    if "gpt" in path.name:
        caches = {name: np.zeros((1, 4, 0, 8), np.float32) for name in caches}
    return np.asarray(ReferenceEvaluator(model).run(["logits"], {"input_ids": tokens[None], **caches})[0]).reshape(-1)


@pytest.fixture(scope="module")
def llama() -> dict[str, np.ndarray]:
    return random_weights(SIZES, np.random.default_rng(3))


def test_a_llama_continues_from_token_to_token_without_options(llama: dict[str, np.ndarray], tmp_path: Path) -> None:
    wanted = logits(TOKENS, llama, 2, 4, 2)
    net = mccompile.load(folder(tmp_path / "llama", LLAMA, named(llama, LLAMA_NAMES)), target="generic", cc=_COMPILER)
    for number, token in enumerate(TOKENS):
        np.testing.assert_allclose(net(np.array([[token]]))[0].reshape(-1), wanted[number], rtol=1e-4, atol=1e-5)
    net.reset()
    net(TOKENS[None, :5])
    np.testing.assert_allclose(net(TOKENS[None, 5:])[0].reshape(-1), wanted[-1], rtol=1e-4, atol=1e-5)


def test_bfloat16_is_the_upper_half_of_a_float(llama: dict[str, np.ndarray], tmp_path: Path) -> None:
    cut = {role: (w.view(np.uint32) & 0xFFFF0000).view(np.float32) for role, w in llama.items()}
    path = folder(tmp_path / "llama", LLAMA, named(llama, LLAMA_NAMES), "BF16")
    np.testing.assert_allclose(evaluated(path, TOKENS), logits(TOKENS, cut, 2, 4, 2)[-1], rtol=1e-4, atol=1e-5)


def test_mistral_looks_back_to_its_window(llama: dict[str, np.ndarray], tmp_path: Path) -> None:
    config = {**LLAMA, "model_type": "mistral", "sliding_window": 3}
    path = folder(tmp_path / "mistral", config, named(llama, LLAMA_NAMES))
    wanted = logits(TOKENS, llama, 2, 4, 2, windows={0: 3, 1: 3})[-1]
    np.testing.assert_allclose(evaluated(path, TOKENS), wanted, rtol=1e-4, atol=1e-5)


def test_gemma2_has_caps_windows_in_turns_and_norms_without_their_1(
    llama: dict[str, np.ndarray], tmp_path: Path
) -> None:
    weights = dict(llama)
    for number in range(2):
        weights[f"{number}.attn_post_norm"] = weights[f"{number}.mlp_norm"] * np.float32(1.1)
        weights[f"{number}.mlp_post_norm"] = weights[f"{number}.attn_norm"] * np.float32(0.9)
    stored = {role: w - 1 if "norm" in role else w for role, w in weights.items()}
    config = {**LLAMA, "model_type": "gemma2", "sliding_window": 3, "query_pre_attn_scalar": 20}
    config |= {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0}
    how = {"score_cap": 5, "logit_cap": 3, "factor": 20**-0.5, "embedding": 24**0.5, "windows": {0: 3}}
    path = folder(tmp_path / "gemma2", config, named(stored, GEMMA_NAMES))
    np.testing.assert_allclose(evaluated(path, TOKENS), logits(TOKENS, weights, 2, 4, 2, **how)[-1], rtol=1e-4)


def test_gpt2_has_one_transposed_matrix_of_queries_keys_and_values(tmp_path: Path) -> None:
    sizes = {**SIZES, "width": 32, "groups": 4}
    weights = random_weights(sizes, CHANCE, gpt=True)
    weights["positions"] = CHANCE.standard_normal((32, 32)).astype(np.float32)
    stored = {role: w.T if w.ndim == 2 and role[0].isdigit() else w for role, w in weights.items()}
    for number in range(2):
        for kind, axis in (("", 1), (".bias", 0)):
            parts = [stored.pop(f"{number}.{side}{kind}") for side in "qkv"]
            stored[f"{number}.qkv{kind}"] = np.concatenate(parts, axis)
    config = {"model_type": "gpt2", "vocab_size": 48, "n_embd": 32, "n_head": 4, "n_layer": 2, "n_inner": 40}
    path = folder(tmp_path / "gpt2", {**config, "n_positions": 32}, named(stored, GPT2_NAMES))
    wanted = logits(TOKENS, weights, 2, 4, 4, turns=False)[-1]
    np.testing.assert_allclose(evaluated(path, TOKENS), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"model_type": "bert"}, UnsupportedModel, r"'bert'; what is known: .*llama"),
        ({"rope_scaling": {"rope_type": "spiral"}}, UnsupportedModel, "'spiral'; what is known: .*yarn"),
        ({"quantization_config": {"quant_method": "gptq"}}, UnsupportedModel, "quantized by gptq"),
        ({"num_hidden_layers": 1}, UnsupportedModel, "weights that its family does not have: model.layers.1"),
        ({"num_hidden_layers": 3}, BadFile, "there is no tensor model.layers.2"),
        ({"head_dim": 1 << 28}, BadFile, "a head has 268435456 channels"),
        ({"rope_theta": 1e-300}, BadFile, "frequencies are infinite"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 1e-300}}, BadFile, "frequencies are infinite"),
        ({"hidden_size": "wide"}, BadFile, "hidden_size is 'wide'"),
        ({"vocab_size": 50}, BadFile, r"embed_tokens.weight is \[48, 24\], not \[50, 24\]"),
        ({"hidden_act": "quick"}, UnsupportedModel, "'quick'"),
        ({"head_dim": 5}, UnsupportedModel, "rotary embeddings of 5 channels of a head: their number"),
    ],
)
def test_what_is_not_known_is_refused(
    change: dict[str, Any], error: type[MccError], words: str, llama: dict[str, np.ndarray], tmp_path: Path
) -> None:
    path = folder(tmp_path / "llama", {**LLAMA, **change}, named(llama, LLAMA_NAMES))
    with pytest.raises(error, match=words):
        read_proto(path)


def test_damaged_files_are_refused(llama: dict[str, np.ndarray], tmp_path: Path) -> None:
    path = folder(tmp_path / "llama", LLAMA, named(llama, LLAMA_NAMES))
    for name in ("config.json", "model.safetensors"):
        whole = (path / name).read_bytes()
        for number in range(60):
            data = bytearray(whole[: len(whole) * number // 30] if number < 30 else whole)
            for place in CHANCE.integers(0, min(len(data), 2000), 3 if data else 0):
                data[place] = CHANCE.integers(256)
            (path / name).write_bytes(data)
            try:
                read_proto(path)
            except MccError as error:
                assert error.exit_code in (Exit.UNSUPPORTED, Exit.BAD_FILE)
        (path / name).write_bytes(whole)
    read_proto(path)
