"""Caches in f16 and int8 hold what is written into them rounded once, to the bit, and everything reads that."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mccompile.base.errors import WrongUse
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


def test_what_is_no_cache_is_refused() -> None:
    with pytest.raises(WrongUse, match="--state present=past"):
        compiled(STORED, {}, {"past": (0, 5)}, cache_dtype="f16")
    along = model("(float[4,1] x, float[4,past] k) => (float[4] y, float[4,some] k2)"
                  "{ k2 = Concat<axis=1>(k, x) y = ReduceSum<keepdims=0>(k2, one) }", one=np.array([1]))  # fmt: skip
    with pytest.raises(WrongUse, match="use f16"):
        compiled(along, {"k2": "k"}, {"past": (0, 5)}, cache_dtype="int8")
    assert compiled(along, {"k2": "k"}, {"past": (0, 5)}, cache_dtype="f16")
