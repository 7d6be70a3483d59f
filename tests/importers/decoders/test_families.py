"""Each family computes what transformers computes, which recorded.py keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnxruntime import InferenceSession

from mccompile.base.errors import BadFile, UnsupportedModel
from mccompile.frontend.load import read_proto
from mccompile.importers.decoders import families
from mccompile.importers.decoders.config import Config
from mccompile.importers.decoders.description import Decoder
from mccompile.importers.decoders.family import LLAMA_NAMES

from .files import LLAMA, SIZES, folder, named
from .recorded import PATH, SHOWN, TOKENS, VOCABULARY, saved, weights
from .reference import random_weights

_WINDOWS = ("sliding_window", "sliding_window_pattern", "layer_types")
FAMILIES: dict[str, dict[str, Any]] = json.loads(PATH.read_text())


def evaluated(path: Path) -> np.ndarray:
    """The logits behind the last token, which sees the others in the cache."""
    session = InferenceSession(read_proto(path).SerializeToString())
    caches = {i.name: [0 if size == "past" else size for size in i.shape] for i in session.get_inputs()[1:]}
    inputs = {name: np.zeros(shape, np.float32) for name, shape in caches.items()}
    names = [output.name for output in session.get_outputs()]
    for tokens in (TOKENS[None, :-1], TOKENS[None, -1:]):
        made = dict(zip(names, session.run(None, {"input_ids": tokens, **inputs}), strict=True))
        inputs = {name: made[name.replace("past_key_values", "present").replace("state.", "next.")] for name in inputs}
    return np.asarray(made["logits"]).reshape(-1)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_has_the_logits_of_transformers(name: str, tmp_path: Path) -> None:
    case = FAMILIES[name]
    tensors = saved(weights(case["shapes"]), case["config"]["model_type"])
    found = evaluated(folder(tmp_path / "model", case["config"], tensors))
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))
    assert int(found.argmax()) == case["token"]


@pytest.mark.parametrize("name", ["arcee", "cohere", "ernie4_5", "falcon", "glm4", "helium", "nemotron", "phi"])
def test_a_window_of_a_family_that_has_none_is_no_window(name: str, tmp_path: Path) -> None:
    case = FAMILIES[name]
    found = evaluated(folder(tmp_path / "model", {**case["config"], "sliding_window": 4}, weights(case["shapes"])))
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))


@pytest.mark.parametrize(("said", "windows"), [({}, [4096, 4096, 4096, 0]), ({"sliding_window": None}, [0] * 4)])
def test_exaone_4_has_windows_where_config_json_is_silent(said: dict[str, Any], windows: list[int]) -> None:
    config = {name: value for name, value in FAMILIES["exaone4"]["config"].items() if name not in _WINDOWS}
    (family,) = (each for each in families.FAMILIES if "exaone4" in each.types)
    made = family.describe(Config({**config, **said}))
    assert isinstance(made, Decoder)
    assert [layer.window for layer in made.layers] == windows
    assert [layer.rotary is None for layer in made.layers] == [bool(said) is False and not near for near in windows]


@pytest.mark.parametrize("kind", ["mistral", "ministral"])
@pytest.mark.parametrize(("said", "window"), [({}, 4096), ({"sliding_window": None}, 0), ({"sliding_window": 5}, 5)])
def test_mistral_has_a_window_where_config_json_is_silent(kind: str, said: dict[str, Any], window: int) -> None:
    (family,) = (each for each in families.FAMILIES if kind in each.types)
    made = family.describe(Config({**LLAMA, "model_type": kind, **said}))
    assert isinstance(made, Decoder)
    assert [layer.window for layer in made.layers] == [window, window]


def test_mixtral_has_values_of_its_own_where_config_json_is_silent() -> None:
    config = {name: value for name, value in FAMILIES["mixtral"]["config"].items() if name[:4] not in ("rms_", "rope")}
    (family,) = (each for each in families.FAMILIES if "mixtral" in each.types)
    made = family.describe(Config(config))
    assert isinstance(made, Decoder)
    assert made.epsilon == 1e-5
    assert all(x.rotary and x.rotary.frequencies[1] == np.float32(1e-3) and not x.window for x in made.layers)


def test_the_last_norm_of_rwkv_has_one_epsilon(tmp_path: Path) -> None:
    case = FAMILIES["rwkv"]
    config = {**case["config"], "layer_norm_epsilon": 0.1}
    model = read_proto(folder(tmp_path / "model", config, weights(case["shapes"])))
    norms = [node for node in model.graph.node if node.op_type == "LayerNormalization"]
    found = [next(a.f for a in node.attribute if a.name == "epsilon") for node in norms]
    assert found == [np.float32(0.1)] * (len(found) - 1) + [np.float32(1e-5)]


def test_norms_of_olmo_have_one_epsilon(tmp_path: Path) -> None:
    case = FAMILIES["olmo"]
    found = evaluated(folder(tmp_path / "model", {**case["config"], "layer_norm_eps": 0.1}, weights(case["shapes"])))
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))


def test_scores_of_starcoder_do_not_fall_with_the_layer(tmp_path: Path) -> None:
    case = FAMILIES["gpt_bigcode"]
    config = {**case["config"], "scale_attn_by_inverse_layer_idx": True}
    found = evaluated(folder(tmp_path / "model", config, weights(case["shapes"])))
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("falcon", {"alibi": True}, "bfloat16"),
        ("olmo", {"clip_qkv": 0.5}, "clip_qkv"),
        ("bloom", {"apply_residual_connection_post_layernorm": True}, "result of the norm"),
        ("mpt", {"attn_config": {"clip_qkv": 6}}, "clip_qkv is 6"),
        ("mpt", {"attn_config": {"alibi_bias_max": 16}}, "alibi_bias_max is 16, which transformers computes as 8"),
        ("opt", {"do_layer_norm_before": False}, "norms follow"),
        ("hunyuan", {"rope_scaling": {"alpha": 1000.0}}, "alpha"),
    ],
)
def test_forms_of_a_family_that_are_not_known_are_refused(
    name: str, change: dict[str, Any], words: str, tmp_path: Path
) -> None:
    case = FAMILIES[name]
    with pytest.raises(UnsupportedModel, match=words):
        read_proto(folder(tmp_path / "model", {**case["config"], **change}, weights(case["shapes"])))


def test_a_network_saved_without_its_head_has_names_without_their_beginning(tmp_path: Path) -> None:
    case = FAMILIES["bloom"]
    tensors = {name.removeprefix("transformer."): array for name, array in weights(case["shapes"]).items()}
    found = evaluated(folder(tmp_path / "model", case["config"], tensors))
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))


@pytest.mark.parametrize("begin", ["language_model.model.", "model.language_model."])
def test_the_decoder_of_a_network_that_reads_images_is_read(begin: str, tmp_path: Path) -> None:
    case = FAMILIES["arcee"]
    tensors = {name.replace("model.", begin, 1): array for name, array in weights(case["shapes"]).items()}
    tensors["vision_tower.embeddings.weight"] = np.ones((2, 2), np.float32)
    config = {"model_type": "llava", "text_config": case["config"], "tie_word_embeddings": False}
    found = evaluated(folder(tmp_path / "model", config, tensors))
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))


@pytest.mark.parametrize("kind", ["internlm2", "exaone"])
def test_llama_under_other_names_is_llama(kind: str, tmp_path: Path) -> None:
    drawn = random_weights({**SIZES, "vocabulary": VOCABULARY}, np.random.default_rng(1))
    config = {**LLAMA, "vocab_size": VOCABULARY}
    wanted = evaluated(folder(tmp_path / "llama", config, named(drawn, LLAMA_NAMES)))
    if kind == "internlm2":  # queries of a group, its key and its value
        for n in range(2):
            q, k, v = (drawn.pop(f"{n}.{role}").reshape(2, -1, 8, 24) for role in "qkv")
            drawn[f"{n}.qkv"] = np.concatenate([q, k, v], 1).reshape(-1, 24)
    else:
        config |= {"layer_norm_epsilon": config.pop("rms_norm_eps"), "num_layers": config.pop("num_hidden_layers")}
    names = next(family.names for family in families.FAMILIES if kind in family.types)
    found = evaluated(folder(tmp_path / kind, {**config, "model_type": kind}, named(drawn, names)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_a_norm_that_is_missing_is_no_norm_left_out(tmp_path: Path) -> None:
    case = FAMILIES["arcee"]
    tensors = weights(case["shapes"])
    del tensors["model.layers.1.input_layernorm.weight"]
    with pytest.raises(BadFile, match=r"no tensor model\.layers\.1\.input_layernorm\.weight"):
        read_proto(folder(tmp_path / "model", case["config"], tensors))


@pytest.mark.parametrize(
    ("kind", "said", "context"),
    [("llama", {}, 2048), ("phi3", {}, 4096), ("qwen2", {"max_position_embeddings": None}, 32768), ("gemma", {}, 8192)],
)
def test_a_family_has_a_context_where_config_json_is_silent(kind: str, said: dict[str, Any], context: int) -> None:
    config = {name: value for name, value in LLAMA.items() if name != "max_position_embeddings"}
    family = next(each for each in families.FAMILIES if kind in each.types)
    scaled = {"rope_parameters": {"rope_type": "yarn", "factor": 2.0}, "head_dim": 4, **said}
    made = family.made(Config({**config, **scaled}))
    assert isinstance(made, Decoder)
    assert made.context == context
    longer = family.made(Config({**config, **scaled, "max_position_embeddings": context}))
    assert repr(made) == repr(longer)
