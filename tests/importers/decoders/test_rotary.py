"""Scaled rotary embeddings: frequencies and sizes that transformers 5.24 computes, and texts that get too long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.errors import WrongUse
from mccompile.frontend.load import read_proto
from mccompile.importers.api import Reading
from mccompile.importers.decoders.config import Config
from mccompile.importers.decoders.families import FAMILIES
from mccompile.importers.decoders.family import LLAMA_NAMES, partly_turned
from mccompile.importers.decoders.rotary import rotary
from mccompile.importers.gguf import _add_rotary

from .files import LLAMA, SIZES, folder, named
from .reference import random_weights

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
MIXED = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64, "beta_fast": 4.0}
MIXED |= {"beta_slow": 0.5, "truncate": False, "mscale": 0.7, "mscale_all_dim": 1.2}
LONG = {"type": "longrope", "short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [2.0, 3.0, 4.0, 5.0]}
DYNAMIC = {"rope_type": "dynamic", "factor": 2.0}


@pytest.mark.parametrize(
    ("said", "frequencies", "size"),
    [
        ({"rope_scaling": YARN}, [1, 0.025, 0.0025, 0.00025], 1.138629436111989),
        ({"rope_parameters": MIXED}, [1, 0.0424418, 0.00125, 0.000125], 0.9167912505456107),
        (
            {"rope_scaling": LONG, "original_max_position_embeddings": 32},
            [1, 0.06666667, 0.005, 0.0003333333],
            1.1832159566199232,
        ),
        (
            {"rope_factors": [1, 2, 4, 8], "rope_scaling": {"rope_type": "linear", "factor": 2.0}},
            [0.5, 0.025, 0.00125, 0.0000625],
            1,
        ),
        ({"rope_scaling": DYNAMIC}, [1, 0.1, 0.01, 0.001], 1),
    ],
)
def test_scaled_frequencies_are_those_of_transformers(
    said: dict[str, Any], frequencies: list[float], size: float
) -> None:
    made = rotary(Config({"max_position_embeddings": 128, **said}), 8)
    np.testing.assert_allclose(made.frequencies, frequencies, rtol=1e-6)
    assert made.factor == pytest.approx(size, rel=1e-12)


@pytest.mark.parametrize(
    "scaling", [DYNAMIC, {**LONG, "original_max_position_embeddings": 32, "short_factor": [1.0, 1.0, 1.0, 1.0]}]
)
def test_a_text_ends_where_all_its_angles_would_change(scaling: dict[str, Any], tmp_path: Path) -> None:
    path = folder(
        tmp_path / "llama",
        {**LLAMA, "rope_scaling": scaling},
        named(random_weights(SIZES, np.random.default_rng(3)), LLAMA_NAMES),
    )
    read_proto(path, Reading(dims={"past": (0, 24), "tokens": (1, 8)}))
    with pytest.raises(WrongUse, match=r"(?s)change behind 32 tokens, .*--dim past=0\.\.24,tokens=1\.\.8"):
        read_proto(path, Reading(dims={"past": (0, 25), "tokens": (1, 8)}))


def test_gpt_neox_has_its_own_words_for_rotary_embeddings() -> None:
    said = {**LLAMA, "hidden_size": 32, "num_attention_heads": 4, "head_dim": 8, "hidden_act": "gelu"}
    said |= {"rope_theta": 777.0, "partial_rotary_factor": 1.0, "rotary_emb_base": 100, "rotary_pct": 0.5}
    family = next(family for family in FAMILIES if "gpt_neox" in family.types)
    turned = family.describe(Config(said)).layers[0].rotary
    assert turned is not None
    np.testing.assert_allclose(turned.frequencies, [1, 0.1], rtol=1e-6)


@pytest.mark.parametrize("is_old", [True, False])
def test_the_range_of_yarn_is_whole_where_kinds_of_layers_have_their_own(is_old: bool) -> None:
    kinds = {"full_attention": {**MIXED, "rope_theta": 10000.0}, "sliding_attention": {"rope_theta": 100.0}}
    told = {"rope_scaling": MIXED, "rope_theta": 10000.0, "rope_local_base_freq": 100.0}
    said = {**LLAMA, **(told if is_old else {"rope_parameters": kinds}), "head_dim": 8, "num_hidden_layers": 6}
    family = next(family for family in FAMILIES if "gemma3_text" in family.types)
    near, far = (family.describe(Config(said)).layers[number].rotary for number in (0, 5))
    assert near is not None and far is not None
    np.testing.assert_allclose(near.frequencies, 100.0 ** -(np.arange(4) / 4), rtol=1e-6)
    np.testing.assert_allclose(far.frequencies, [1, 0.05625, 0.00125, 0.000125], rtol=1e-6)


def test_the_older_name_of_scaling_goes_first() -> None:
    both = {"rope_scaling": {"type": "linear", "factor": 2.0}, "rope_parameters": {"rope_theta": 5.0}}
    np.testing.assert_allclose(rotary(Config(both), 4).frequencies, [0.5, 0.005], rtol=1e-6)


def test_what_smollm3_and_gemma2_take_where_a_file_is_silent() -> None:
    smollm3, gemma2 = (next(f for f in FAMILIES if kind in f.types) for kind in ("smollm3", "gemma2"))
    said = {name: value for name, value in LLAMA.items() if name != "rope_theta"}
    turned = smollm3.describe(Config({**said, "head_dim": 4, "num_hidden_layers": 1})).layers[0].rotary
    assert turned is not None
    np.testing.assert_allclose(turned.frequencies, [1, 2e6**-0.5], rtol=1e-6)
    none = {"attn_logit_softcapping": None, "final_logit_softcapping": None}
    made, other = (gemma2.describe(Config({**LLAMA, **more})) for more in ({}, none))
    assert (made.score_cap, made.logit_cap, other.score_cap, other.logit_cap) == (50, 30, 0, 0)


@pytest.mark.parametrize(("turned", "head"), [(30, 44), (6, 47), (24, 47)])
def test_a_gguf_file_says_how_many_channels_of_a_head_turn(turned: int, head: int) -> None:
    values: dict[str, Any] = {"head_dim": head}
    _add_rotary(values, {"phi2.rope.dimension_count": turned}, "phi2", {})
    sizes = {"hidden_size": 2 * head, "num_attention_heads": 2, "intermediate_size": 8, "num_hidden_layers": 1}
    made = partly_turned(Config({**values, **sizes, "vocab_size": 9, "max_position_embeddings": 8}), 1.0)
    assert made.layers[0].rotary and 2 * len(made.layers[0].rotary.frequencies) == turned
