"""Caches in f16 and int8 hold what is written into them rounded once, to the bit, and everything reads that."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from mccompile.base.errors import WrongUse
from mccompile.driver import Options
from mccompile.driver import compile as compile_model
from mccompile.emit.model import state_bytes
from mccompile.importers.decoders.family import LLAMA_NAMES
from mccompile.passes.api import CacheDtype
from mccompile.targets.api import Prefer
from tests.importers.decoders.files import LLAMA, SIZES, folder, named
from tests.importers.decoders.reference import random_weights
from tests.passes.memory.test_growing_states import built, compiled, floats, model

STORED = model(
    "(float[1,4] x, float[past,4] k) => (float[all,4] y, float[some,4] k2) { k2 = Concat<axis=0>(k, x) y = Neg(k2) }"
)


def rounded(x: np.ndarray, kind: str) -> np.ndarray:
    if kind == "f16":
        return x.astype(np.float16).astype(np.float32)
    scale = np.maximum(np.abs(x).max(-1, keepdims=True) / np.float32(127), np.float32(2.0**-126))
    return np.asarray(np.round(x / scale) * scale)


@pytest.mark.parametrize(("kind", "bytes_of_row"), [("f16", 8), ("int8", 8)])
@pytest.mark.parametrize("optimize", [True, False])
def test_rows_are_rounded_once(kind: str, bytes_of_row: int, optimize: bool, tmp_path: Path) -> None:
    package = compiled(STORED, {"k2": "k"}, {"past": (0, 5)}, cache_dtype=kind, optimize=optimize)
    net = built(package, tmp_path)
    assert net.report.state_bytes == 6 * bytes_of_row + 8  # and the length
    rows = np.concatenate([floats(4, 4) * 5, np.zeros((1, 4), np.float32), np.float32([[127, 0.5, 1.5, -126.5]])])
    for count in range(len(rows)):
        found = net.run({"x": rows[count : count + 1]})["y"]
        assert np.array_equal(found, -rounded(rows[: count + 1], kind))


SEVERAL = model(
    "(float[1,4] x, float[past,4] a, float[past,4] b, float[past,4] c) =>"
    "(float[4] y, float[all,4] a2, float[all,4] b2, float[all,4] c2) {"
    "a2 = Concat<axis=0>(a, x) p = ReduceSum<keepdims=0>(a2, first) b2 = Concat<axis=0>(b, x)"
    "q = ReduceSum<keepdims=0>(b2, first) c2 = Concat<axis=0>(c, x) r = ReduceSum<keepdims=0>(c2, first)"
    "y = Sum(p, q, r) }",
    first=np.array([0]),
)


@pytest.mark.parametrize("prefer", ["time", "ram"])
def test_one_copy_at_most_is_wide_at_a_time(prefer: str) -> None:
    """Even where floats of 16 bits are computed in 32 because time comes first."""
    states, dims = {"a2": "a", "b2": "b", "c2": "c"}, {"past": (0, 499)}
    files = {kind: compiled(SEVERAL, states, dims, cache_dtype=kind, prefer=prefer).files for kind in ("", "f16")}
    arenas = {kind: json.loads(found["report.json"])["arena_bytes"] for kind, found in files.items()}
    cache = 500 * 4 * 4
    assert 3 * cache < arenas[""] and arenas["f16"] < 2.5 * cache + 1000


@pytest.mark.parametrize("kind", ["f16", "int8"])
def test_attention_reads_a_cache_as_it_is_stored(kind: str, tmp_path: Path) -> None:
    """Time is preferred, and many queries at once would be faster over keys that are widened whole."""
    weights = random_weights(SIZES, np.random.default_rng(1))
    path = folder(tmp_path / "llama", {**LLAMA, "max_position_embeddings": 1024}, named(weights, LLAMA_NAMES))
    dims = {"past": (0, 960), "tokens": (1, 24)}
    options = Options(prefer=Prefer.TIME, dims=dims, cache_dtype=CacheDtype(kind))
    package = compile_model(path, options)
    heads, head = SIZES["groups"], SIZES["head"]
    keys = 4 * 984 * heads * head  # of a layer, as floats
    assert json.loads(package.files["report.json"])["arena_bytes"] - state_bytes(package.plan) < keys


def test_what_is_no_cache_is_refused() -> None:
    with pytest.raises(WrongUse, match="--state present=past"):
        compiled(STORED, {}, {"past": (0, 5)}, cache_dtype="f16")
    along = model("(float[4,1] x, float[4,past] k) => (float[4] y, float[4,some] k2)"
                  "{ k2 = Concat<axis=1>(k, x) y = ReduceSum<keepdims=0>(k2, one) }", one=np.array([1]))  # fmt: skip
    with pytest.raises(WrongUse, match="use f16"):
        compiled(along, {"k2": "k"}, {"past": (0, 5)}, cache_dtype="int8")
    assert compiled(along, {"k2": "k"}, {"past": (0, 5)}, cache_dtype="f16")
