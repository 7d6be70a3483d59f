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
from mccompile.importers.decoders.family import LLAMA_NAMES
from mccompile.importers.decoders.rotary import rotary

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
