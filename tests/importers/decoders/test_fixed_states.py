"""Decoders whose states have a fixed size, in GGUF files as llama.cpp's converter lays them out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.errors import BadFile, UnsupportedModel
from mccompile.frontend.load import read_proto
from mccompile.importers import states
from mccompile.importers.decoders.families.mamba import _GGUF, _NAMES, _NAMES2

from .files import folder
from .recorded import SHOWN, weights
from .test_families import FAMILIES, evaluated
from .test_gguf import gguf

_WORDS = {"embedding_length": "hidden_size", "block_count": "num_hidden_layers", "ssm.conv_kernel": "conv_kernel"}
_WORDS |= {"ssm.state_size": "state_size", "attention.layer_norm_rms_epsilon": "layer_norm_epsilon"}


def _file(name: str) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """What it says, and its tensors."""
    case, kind = FAMILIES[name], "mamba2" if name == "mamba2" else "mamba"
    config = case["config"]
    inner, groups = int(config["expand"] * config["hidden_size"]), config.get("n_groups", 1)
    said = {f"{kind}.{word}": config[own] for word, own in _WORDS.items()}
    said |= {f"{kind}.ssm.inner_size": inner, f"{kind}.attention.head_count": 0, "general.architecture": kind}
    said[f"{kind}.ssm.time_step_rank"] = config.get("num_heads") or config["time_step_rank"]
    said |= {f"{kind}.ssm.group_count": groups} if kind == "mamba2" else {}
    said |= {f"{kind}.ssm.dt_b_c_rms": True} if name == "falcon_mamba" else {}
    names = _NAMES2 if name == "mamba2" else _NAMES
    roles = {full.format(n): _GGUF.get(role, "").format(n) for role, full in names.items() for n in range(2)}
    made = {roles[full]: _laid(full, array, kind, groups) for full, array in weights(case["shapes"]).items()}
    return said, made


def _laid(full: str, array: np.ndarray, kind: str, groups: int) -> np.ndarray:
    array = -np.exp(array) if full.endswith("A_log") else array
    if full.endswith("conv1d.weight"):
        return array.reshape(len(array), -1)
    if kind == "mamba2" and full.endswith((".A_log", ".D")):
        return array.reshape(-1, 1)
    return array.reshape(groups, -1) if full.endswith("mixer.norm.weight") else array


@pytest.mark.parametrize("name", ["mamba", "falcon_mamba", "mamba2"])
def test_a_gguf_file_has_the_logits_of_transformers(name: str, tmp_path: Path) -> None:
    case, (said, tensors) = FAMILIES[name], _file(name)
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf(said, {name: ("F32", a.shape, a.astype("<f4").tobytes()) for name, a in tensors.items()}))
    found = evaluated(path)
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))


@pytest.mark.parametrize("name", ["mamba", "falcon_mamba"])
def test_the_inner_width_is_that_of_the_file_whatever_it_expands_by(name: str, tmp_path: Path) -> None:
    case = FAMILIES[name]
    said = {**case["config"], "expand": 16, "intermediate_size": 2 * case["config"]["hidden_size"]}
    found = evaluated(folder(tmp_path / "model", said, weights(case["shapes"])))
    np.testing.assert_allclose(found[:SHOWN], case["logits"], rtol=1e-4, atol=1e-4 * float(np.abs(found).max()))


@pytest.mark.parametrize("name", ["mamba", "mamba2", "rwkv"])
def test_all_inputs_but_tokens_are_states(name: str, tmp_path: Path) -> None:
    case = FAMILIES[name]
    model = read_proto(folder(tmp_path / "model", case["config"], weights(case["shapes"])))
    known = states.declared(model)
    assert [i.name for i in model.graph.input if i.name not in known.values()] == ["input_ids"]
    assert [o.name for o in model.graph.output if o.name not in known] == ["logits"]


@pytest.mark.parametrize(
    ("name", "change", "words", "error"),
    [
        ("mamba", {"hidden_act": "gelu"}, "hidden_act is 'gelu'", UnsupportedModel),
        ("mamba", {"rescale_prenorm_residual": True}, "to false in config.json", UnsupportedModel),
        ("mamba2", {"time_step_limit": [0.0, 0.5]}, "time_step_limit", UnsupportedModel),
        ("mamba2", {"num_heads": 3}, "32 channels are not 3 heads", BadFile),
        ("rwkv", {"num_hidden_layers": 3}, "weights that its family does not have", UnsupportedModel),
        ("rwkv", {"num_hidden_layers": 5}, "there is no tensor", BadFile),
        ("mamba", {"state_size": 6}, "is .*, not", BadFile),
    ],
)
def test_forms_that_are_not_known_are_refused(
    name: str, change: dict[str, Any], words: str, error: type[Exception], tmp_path: Path
) -> None:
    case = FAMILIES[name]
    with pytest.raises(error, match=words):
        read_proto(folder(tmp_path / "model", {**case["config"], **change}, weights(case["shapes"])))
