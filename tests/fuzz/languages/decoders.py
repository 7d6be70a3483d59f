"""Random small decoders as files, compiled for this machine, beside the same weights in doubles (tests/importers)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.random import Generator

import mccompile
from mccompile.base.errors import MccError
from mccompile.importers.decoders.family import GGUF_NAMES
from mccompile.importers.decoders.ggml import FORMS, stored
from mccompile.importers.decoders.weights import Blocks
from tests.importers.decoders import exported
from tests.importers.decoders.files import folder, named
from tests.importers.decoders.reference import logits, random_weights, with_experts
from tests.importers.decoders.test_gguf import ELEMENTS, NUMBERS, SAID, blocks, gguf

from .families import CONTEXT, DRAWN

# Of the largest logit, by how the cache is stored: rounded as it is here, but where errors of floats turn a level.
TOLERANCES = {"": 1e-3, "f16": 4e-3, "int8": 0.06}
TOKENS = 14


@dataclass(frozen=True)
class Decoder:
    path: Path
    weights: dict[str, np.ndarray]
    sizes: dict[str, int]
    how: dict[str, Any]  # of the reference
    text: str


def drawn(chance: Generator, place: Path) -> Decoder:
    groups = int(chance.integers(1, 4))
    sizes = {"groups": groups, "heads": groups * int(chance.integers(1, 4)), "head": 2 * int(chance.integers(1, 9))}
    sizes |= {"layers": int(chance.integers(1, 4)), "vocabulary": int(chance.integers(5, 90))}
    share = chance.random()
    return (_gguf if share < 0.5 else _folder if share < 0.85 else _export)(chance, place, sizes)


def _export(chance: Generator, place: Path, sizes: dict[str, int]) -> Decoder:
    """An ONNX file, as optimum or onnxruntime-genai write it; of the latter also with experts, floats or integers."""
    bits, block = int(chance.choice([0, 4, 8])), int(chance.choice([0, 16, 32]))
    unit = block or (2 if bits == 4 else 1)
    sizes |= {"width": unit * int(chance.integers(-(-3 // unit), 50 // unit + 1))}
    sizes |= {"hidden": unit * int(chance.integers(-(-3 // unit), 90 // unit + 1))}
    way, weights = str(chance.choice(list(exported.WAYS))), random_weights(sizes, chance)
    count, experts = int(chance.integers(exported.CHOSEN, 6)), dict[str, int]()
    if way == "genai" and chance.random() < 0.5:
        weights = with_experts(weights, sizes["layers"], count, chance)
        experts = {"bits": bits, "block": block}
        if bits:
            weights |= {role: exported.rounded(w, **experts) for role, w in weights.items() if ".expert." in role}
    path = exported.written(place / "decoder", way, weights, sizes, CONTEXT, **experts)
    how = {"experts": {"chosen": exported.CHOSEN, "among_best": True}}
    return Decoder(
        path, weights, sizes, how, f"{way} {sizes} {count if '0.router' in weights else 0} experts {experts}"
    )


def _folder(chance: Generator, place: Path, sizes: dict[str, int]) -> Decoder:
    sizes |= {"width": int(chance.integers(3, 50)), "hidden": int(chance.integers(3, 90))}
    config, tensors, weights, how = DRAWN[int(chance.integers(len(DRAWN)))](chance, sizes)
    is_narrow = chance.random() < 0.4 and config["model_type"] != "gemma2"  # of whose norms 1 is left out
    if is_narrow:
        weights = {role: (w.view(np.uint32) & 0xFFFF0000).view(np.float32) for role, w in weights.items()}
    path = folder(place / "decoder", config, tensors, "BF16" if is_narrow else "F32")
    return Decoder(path, weights, sizes, how, json.dumps(config))


def _gguf(chance: Generator, place: Path, sizes: dict[str, int]) -> Decoder:
    """Each matrix has a type of its own; sums are as long as its blocks ask for."""
    names = [name for name in ELEMENTS if chance.random() < 0.4] or ["Q4_0"]
    unit = max(FORMS[NUMBERS[name]].elements for name in names)
    sizes["head"] = unit // 4
    sizes["heads"], sizes["groups"] = 4, int(chance.choice([1, 2, 4]))
    sizes |= {"width": unit * int(chance.integers(1, 3)), "hidden": unit * int(chance.integers(1, 3))}
    weights, tensors, kinds = random_weights(sizes, chance), dict[str, tuple[str, tuple[int, ...], bytes]](), []
    if chance.random() < 0.5:
        weights["head"] = weights["embed"][::-1].copy()
    for role, array in list(weights.items()):
        if array.ndim == 1:
            tensors[role] = "F32", array.shape, array.astype(np.float32).tobytes()
            continue
        kinds.append(kind := str(chance.choice(names)))
        data = blocks(kind, *array.shape)
        found = stored(FORMS[NUMBERS[kind]], np.frombuffer(data, np.uint8), array.shape)
        floats = found.floats if isinstance(found, Blocks) else found
        if role.endswith((".q", ".k")):  # channels that turn together are neighbours there
            half = sizes["head"] // 2
            floats = floats.reshape(-1, half, 2, array.shape[1]).swapaxes(1, 2).reshape(array.shape)
        weights[role], tensors[role] = floats, (kind, array.shape, data)
    said = {**SAID, "llama.embedding_length": sizes["width"], "llama.feed_forward_length": sizes["hidden"]}
    said |= {"llama.block_count": sizes["layers"], "llama.attention.head_count_kv": sizes["groups"]}
    said |= {"llama.attention.head_count": sizes["heads"], "llama.attention.key_length": sizes["head"]}
    path = place / "decoder.gguf"
    path.write_bytes(gguf(said, named(tensors, GGUF_NAMES)))
    return Decoder(path, weights, sizes, {}, f"{sizes} {kinds}")


def options(chance: Generator, compiler: str) -> dict[str, Any]:
    target = str(chance.choice(["generic", "native"]))
    made: dict[str, Any] = {"target": target, "prefer": str(chance.choice(["balanced", "time", "ram", "flash"]))}
    made["dims"] = {"past": (0, int(chance.integers(TOKENS, 40))), "tokens": (1, int(chance.integers(1, 9)))}
    made |= {"block_activations": "float"} if chance.random() < 0.3 else {}
    made |= {"cache_dtype": str(chance.choice(list(TOLERANCES)))} if chance.random() < 0.5 else {}
    return made | ({"cc": compiler} if target == "generic" else {})


def differs(decoder: Decoder, chosen: dict[str, Any], chance: Generator) -> str:
    """How the logits behind pieces of a text differ from the reference; empty where they do not."""
    tokens = chance.integers(0, decoder.sizes["vocabulary"], TOKENS)
    sizes = decoder.sizes
    with np.errstate(over="ignore"):  # in the sigmoid of gates
        how = {**decoder.how, "cache": chosen.get("cache_dtype", "")}
        wanted = logits(tokens, decoder.weights, sizes["layers"], sizes["heads"], sizes["groups"], **how)
    try:
        net = mccompile.load(decoder.path, **chosen)
    except MccError as error:
        return f"refused: {error}"
    for _ in range(2):
        net.reset()
        at = 0
        while at < TOKENS:
            end = min(TOKENS, at + int(chance.integers(1, chosen["dims"]["tokens"][1] + 1)))
            found = np.asarray(net(tokens[None, at:end])[0]).reshape(-1)
            error = float(np.abs(found - wanted[end - 1]).max() / np.abs(wanted[end - 1]).max())
            if not error <= TOLERANCES[how["cache"]]:
                return f"behind token {end} logits differ by {error:.2g} of the largest"
            at = end
    return ""
