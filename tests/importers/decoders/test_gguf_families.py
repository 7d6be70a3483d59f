"""GGUF files of the families that transformers was recorded for, as llama.cpp's converter lays them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.errors import UnsupportedModel
from mccompile.frontend.load import read_proto
from mccompile.importers.decoders.description import Decoder
from mccompile.importers.decoders.families import FAMILIES
from mccompile.importers.decoders.family import GGUF_NAMES, Family
from mccompile.importers.decoders.weights import Weight
from mccompile.importers.gguf import _WORDS, _config

from .recorded import SHOWN, weights
from .test_families import FAMILIES as RECORDED
from .test_families import evaluated
from .test_gguf import gguf

ARCHITECTURES = {
    "arcee": "arcee", "cohere": "command-r", "cohere2": "cohere2", "ernie4_5": "ernie4_5", "exaone4": "exaone4",
    "hunyuan": "hunyuan-dense", "llama with yarn": "llama", "nemotron": "nemotron", "olmo": "olmo", "olmo3": "olmo2",
    "seed_oss": "seed_oss",
}  # fmt: skip


def neighbours(array: np.ndarray, heads: int) -> np.ndarray:
    """Channels that turn together side by side."""
    return array.reshape(heads, 2, -1, *array.shape[1:]).swapaxes(1, 2).reshape(array.shape)


def converted(name: str, tensors: dict[str, np.ndarray], config: dict[str, Any]) -> dict[str, np.ndarray]:
    family = of(name)
    roles = {name.format(n): (role, n) for role, name in family.names.items() for n in range(4)}
    made = {}
    for full, array in tensors.items():
        stem, _, kind = full.rpartition(".")
        role, number = roles[stem]
        if family.pairs and not family.neighbours and role in ("q", "k"):
            array = neighbours(array, config["num_attention_heads" if role == "q" else "num_key_value_heads"])
        if "norm" in role and kind == "weight":
            array = array + np.float32(family.norm_offset)
        made[f"{ {**GGUF_NAMES, **family.gguf_names}[role].format(number) }.{kind}".replace(" ", "")] = array
    return made


def of(name: str) -> Family:
    return next(family for family in FAMILIES if RECORDED[name]["config"]["model_type"] in family.types)


def said(name: str, config: dict[str, Any]) -> dict[str, Any]:
    kind = ARCHITECTURES[name]
    told = {"general.architecture": kind}
    for word, names in _WORDS.items():
        found = next((config[each] for each in names if config.get(each) is not None), None)
        told |= {} if found is None else {f"{kind}.{word}": found}
    rope = config["rope_parameters"]
    rope = rope.get("full_attention", rope)
    told[f"{kind}.rope.freq_base"] = rope["rope_theta"]
    if "partial_rotary_factor" in rope:
        told[f"{kind}.rope.dimension_count"] = int(config["head_dim"] * rope["partial_rotary_factor"])
    if rope["rope_type"] == "yarn":
        told |= {f"{kind}.rope.scaling.type": "yarn", f"{kind}.rope.scaling.factor": rope["factor"]}
        told[f"{kind}.rope.scaling.original_context_length"] = rope["original_max_position_embeddings"]
    if "layer_types" in config:
        near = [each == "sliding_attention" for each in config["layer_types"]]
        told[f"{kind}.attention.sliding_window_pattern"] = near
    return told


def file(name: str, path: Path, **more: Any) -> Path:
    case = RECORDED[name]
    tensors = converted(name, weights(case["shapes"]), case["config"])
    parts = {each: ("F32", w.shape, np.ascontiguousarray(w).tobytes()) for each, w in tensors.items()}
    path.write_bytes(gguf({**said(name, case["config"]), **more}, parts))
    return path


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_family_has_the_logits_of_transformers(name: str, tmp_path: Path) -> None:
    found, case = evaluated(file(name, tmp_path / "model.gguf")), RECORDED[name]
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))


def test_a_factor_of_cosines_stands_beside_that_of_yarn(tmp_path: Path) -> None:
    """As llama.cpp computes it: that of yarn is 1 + ln(factor) / 10."""
    usual = 1 + 0.1 * float(np.log(RECORDED["llama with yarn"]["config"]["rope_parameters"]["factor"]))
    names = ("llama.rope.scaling.attn_factor", "llama.rope.scaling.yarn_attn_factor")
    found = [
        evaluated(file("llama with yarn", tmp_path / "model.gguf", **{name: value}))
        for name, value in zip(names, (0.8, 0.8 * usual), strict=True)
    ]
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"llama.expert_weights_scale": 2.5}, "expert_weights_scale is 2.5"),
        ({"llama.residual_scale": 0.5}, "residual_scale is 0.5"),
        ({"llama.rope.dimension_count": 2}, "embeddings of 2 channels"),
        ({"llama.rope.scaling.type": "longrope"}, "'longrope'"),
        ({"llama.rope.scaling.type": "linear", "llama.rope.scaling.attn_factor": 0.8}, "cosines by 0.8"),
        ({"llama.rope.scaling.yarn_ext_factor": 0.5}, "yarn_ext_factor"),
    ],
)
def test_what_is_not_known_is_refused(more: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModel, match=words):
        read_proto(file("llama with yarn", tmp_path / "model.gguf", **more))


def decoder(kind: str, **more: Any) -> Decoder:
    """Of a file that says only what llama.cpp cannot do without."""
    told: dict[str, float] = {"embedding_length": 24, "block_count": 5, "feed_forward_length": 40}
    told |= {"context_length": 64, "attention.head_count": 4}
    told |= {"attention.layer_norm_rms_epsilon": 1e-5, "attention.layer_norm_epsilon": 1e-4}
    said = {f"{kind}.{name}": value for name, value in {**told, **more}.items()}
    table = Weight("token_embd.weight", (9, 24), lambda: np.zeros((9, 24), np.float32))
    family, config = _config({"general.architecture": kind, **said}, {table.name: table})
    return family.describe(config)


@pytest.mark.parametrize("kind", ["command-r", "ernie4_5", "seed_oss", "glm4", "gptneox", "phi2", "gemma3", "llama"])
def test_rotary_embeddings_are_those_of_llama_cpp_where_a_file_says_nothing(kind: str) -> None:
    """Channels of a head by the number of heads, all of them turned, from a base of 10,000."""
    made = decoder(kind, use_parallel_residual=True)
    turned = made.layers[-1].rotary
    assert made.head == 6 and turned is not None
    np.testing.assert_allclose(turned.frequencies, 10000.0 ** -(np.arange(3) / 3), rtol=1e-6)


def test_factors_and_caps_are_those_of_llama_cpp_where_a_file_says_nothing() -> None:
    assert (decoder("gemma2").score_cap, decoder("gemma2").logit_cap) == (50, 30)
    assert decoder("granite").score_factor == 0 and decoder("command-r").logit_factor == 1
    assert decoder("olmo").epsilon == 1e-4 and decoder("stablelm").parallel


def test_windows_are_those_of_llama_cpp_where_a_file_says_nothing() -> None:
    assert not any(layer.window for layer in decoder("gemma3").layers)
    found = decoder("olmo2", **{"attention.sliding_window": 7}).layers
    assert [layer.window for layer in found] == [7, 7, 7, 0, 7]


@pytest.mark.parametrize("name", ["rope.scaling.factor", "rope.scale_linear"])
def test_a_factor_without_a_way_divides_frequencies(name: str) -> None:
    plain, scaled = (decoder("llama", **more).layers[0].rotary for more in ({}, {name: 4.0}))
    assert plain and scaled
    np.testing.assert_array_equal(scaled.frequencies * 4, plain.frequencies)


def test_cosines_have_a_factor_where_yarn_scales_nothing() -> None:
    """And in Gemma 3 where attention has a window, too."""
    more = {"rope.scaling.type": "yarn", "rope.scaling.attn_factor": 1.2, "attention.sliding_window": 7}
    for kind in ("llama", "gemma3"):
        assert [layer.rotary and layer.rotary.factor for layer in decoder(kind, **more).layers] == [1.2] * 5
