"""Weights of 4 bits: their scales are numbers of 16 bits where these can hold them, and lie so in the blob."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mccompile.driver import Options, compile
from mccompile.frontend.load import load
from mccompile.frontend.save import write
from mccompile.quantize.weights_only import quantize_weights
from tests import small_models


def stored(size: float, bits: int, folder: Path) -> tuple[np.ndarray, set[str]]:
    """The scales of 256x80 weights of a size, and the types in the blob."""
    weights = {"w": small_models.floats(3, 256, 80) * np.float32(size)}
    nodes = [small_models.node("MatMul", "x w", "y")]
    made = small_models.model("few", nodes, [("x", (1, 256))], [("y", (1, 80))], weights)
    graph = load(small_models.save(made, folder))
    quantize_weights(graph, bits)
    scales = next(v.constant.array for v in graph.constants() if v.constant is not None and v.name.endswith("/scale"))
    write(graph, folder / "few_bits.onnx")
    plan = compile(folder / "few_bits.onnx", Options()).plan
    return scales, {entry.contents.type.dtype.name for entry in plan.entries}


def test_scales_are_rounded_to_halves(tmp_path: Path) -> None:
    scales, types = stored(1, 4, tmp_path)
    assert scales.shape == (8, 80) and np.array_equal(scales, scales.astype(np.float16))
    assert types == {"i4", "f16"}


@pytest.mark.parametrize("size", [1e-6, 1e7])
def test_what_halves_cannot_hold_stays(size: float, tmp_path: Path) -> None:
    scales, types = stored(size, 4, tmp_path)
    assert np.abs(scales / size).max() > 0.05 and types == {"i4", "f32"}
