"""Small language models as files: `python -m tests.importers.decoders.files llama` writes a folder of Hugging Face."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.importers.decoders.family import LLAMA_NAMES

from .reference import random_weights

SIZES = {"vocabulary": 48, "width": 24, "heads": 4, "groups": 2, "head": 8, "hidden": 40, "layers": 2}
LLAMA = {
    "model_type": "llama",
    "vocab_size": 48,
    "hidden_size": 24,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "max_position_embeddings": 32,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}


def safetensors(tensors: Mapping[str, np.ndarray], kind: str = "F32") -> bytes:
    head, place, parts = dict[str, Any](), 0, []
    for name, array in tensors.items():
        data = array.astype(np.float32).tobytes()
        if kind == "BF16":
            data = (np.frombuffer(data, np.uint32) >> 16).astype(np.uint16).tobytes()
        head[name] = {"dtype": kind, "shape": array.shape, "data_offsets": [place, place + len(data)]}
        place += len(data)
        parts.append(data)
    text = json.dumps(head).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def folder(path: Path, config: Mapping[str, Any], tensors: Mapping[str, np.ndarray], kind: str = "F32") -> Path:
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    (path / "model.safetensors").write_bytes(safetensors(tensors, kind))
    return path


def named(weights: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Roles by the words of a family."""
    made = {}
    for role, array in weights.items():
        number, _, rest = role.partition(".") if role[0].isdigit() else ("", "", role)
        part, _, bias = rest.partition(".")
        made[f"{names[part].format(number)}.{bias or 'weight'}"] = array
    return made


def main(names: list[str]) -> None:
    for name in names:
        folder(Path(name), LLAMA, named(random_weights(SIZES, np.random.default_rng(1)), LLAMA_NAMES))


if __name__ == "__main__":
    main(sys.argv[1:])
