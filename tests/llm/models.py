"""Small language models with random weights and a tokenizer: `python -m tests.llm.models tiny` writes a folder."""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mccompile.importers.decoders.families.gpt import GPT2_NAMES
from mccompile.importers.decoders.family import GGUF_NAMES, LLAMA_NAMES
from tests.importers.decoders import recorded
from tests.importers.decoders.files import LLAMA, SIZES, folder, named
from tests.importers.decoders.reference import logits, random_weights
from tests.importers.decoders.test_gguf import SAID
from tests.tokenizer.built import of_bytes, of_characters

_WIDE = {**SIZES, "width": 32, "hidden": 64}


def llama(path: Path, family: str, **config: Any) -> tuple[Any, Mapping[str, np.ndarray]]:
    """A folder of Hugging Face; its tokenizer and weights."""
    made = of_characters(family) if family == "llama2" else of_bytes(family)
    weights = random_weights({**SIZES, "vocabulary": made.get_vocab_size()}, np.random.default_rng(1))
    told = {**LLAMA, "vocab_size": made.get_vocab_size(), "max_position_embeddings": 64, **config}
    folder(path, told, named(weights, LLAMA_NAMES))
    made.save(str(path / "tokenizer.json"))
    return made, weights


def gpt2(path: Path) -> tuple[Any, Mapping[str, np.ndarray]]:
    made, width = of_bytes("gpt2"), 32
    sizes = {**SIZES, "width": width, "groups": 4, "vocabulary": made.get_vocab_size()}
    weights = random_weights(sizes, np.random.default_rng(2), gpt=True)
    weights["positions"] = np.random.default_rng(3).standard_normal((64, width)).astype(np.float32)
    stored = {role: w.T if w.ndim == 2 and role[0].isdigit() else w for role, w in weights.items()}
    for number in range(2):
        for kind, axis in (("", 1), (".bias", 0)):
            parts = [stored.pop(f"{number}.{side}{kind}") for side in "qkv"]
            stored[f"{number}.qkv{kind}"] = np.concatenate(parts, axis)
    config = {"model_type": "gpt2", "n_embd": width, "n_head": 4, "n_layer": 2, "n_inner": 40, "n_positions": 64}
    folder(path, {**config, "vocab_size": made.get_vocab_size()}, named(stored, GPT2_NAMES))
    made.save(str(path / "tokenizer.json"))
    return made, weights


def rwkv(path: Path) -> None:
    """A folder of a network whose states have a fixed size."""
    made, case = of_bytes("llama3"), json.loads(recorded.PATH.read_text())["rwkv"]
    count = made.get_vocab_size()
    shapes = {name: [count if x == recorded.VOCABULARY else x for x in own] for name, own in case["shapes"].items()}
    folder(path, {**case["config"], "vocab_size": count}, recorded.weights(shapes))
    made.save(str(path / "tokenizer.json"))


def gguf(path: Path, said: Mapping[str, Any]) -> Mapping[str, np.ndarray]:
    """A GGUF file with that tokenizer; its weights."""
    weights = random_weights({**_WIDE, "vocabulary": len(said["tokenizer.ggml.tokens"])}, np.random.default_rng(4))
    tensors = {}
    for role, array in weights.items():
        apart = role.endswith((".q", ".k"))  # channels that turn together are neighbours there
        tensors[role] = array.reshape(-1, 2, 4, 32).swapaxes(1, 2).reshape(array.shape) if apart else array
    data, place, parts, names = bytearray(b"GGUF"), 0, b"", named(tensors, GGUF_NAMES)
    said = {**SAID, "llama.context_length": 64, **said}
    data += struct.pack("<IQQ", 3, len(names), len(said))
    for name, value in said.items():
        data += _text(name) + _value(value)
    for name, array in names.items():
        data += _text(name) + struct.pack(f"<I{array.ndim}QIQ", array.ndim, *array.shape[::-1], 0, place)
        parts += array.astype(np.float32).tobytes()
        parts += bytes(-len(parts) % 32)
        place = len(parts)
    path.write_bytes(bytes(data) + bytes(-len(data) % 32) + parts)
    return weights


def _text(words: str) -> bytes:
    return struct.pack("<Q", len(words.encode())) + words.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, list):
        elements = [_value(each) for each in value]
        return (
            struct.pack("<I", 9) + elements[0][:4] + struct.pack("<Q", len(value)) + b"".join(e[4:] for e in elements)
        )
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    return struct.pack("<II", 4, value) if isinstance(value, int) else struct.pack("<If", 6, value)


def continued(tokens: Sequence[int], weights: Mapping[str, np.ndarray], count: int, **how: Any) -> list[int]:
    """The most likely tokens behind those, in doubles and without a cache."""
    found = list(tokens)
    groups = how.pop("groups", 2)
    for _ in range(count):
        found.append(int(np.argmax(logits(np.array(found), weights, 2, 4, groups, **how)[-1])))
    return found[len(tokens) :]


if __name__ == "__main__":
    llama(Path(sys.argv[1]), "llama3", max_position_embeddings=256)
    Path(sys.argv[1], "chat_template.jinja").write_text(
        "{% for message in messages %}<s>{{ message.role }}: {{ message.content }}<|end|>{% endfor %}"
        "{% if add_generation_prompt %}<s>assistant: {% endif %}"
    )
