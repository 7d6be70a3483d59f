"""Biases take back what rounding adds on average, no more than samples agree on, and only where others confirm it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mccompile.base.quantizing import Recipe
from mccompile.frontend.load import load
from mccompile.quantize.bench import outputs
from mccompile.quantize.corrected_biases import _moved
from mccompile.quantize.quantize import quantized
from mccompile.quantize.samples import Samples, decibels
from tests.small_models import floats, model, node, save


def test_what_samples_agree_on_is_taken_back() -> None:
    errors = np.array([[0.5, 1.0, 2.0], [0.5, -1.0, 1.0], [0.5, 1.0, 2.0], [0.5, -1.0, 1.0]])
    np.testing.assert_allclose(_moved(errors), [0.5, 0.0, 1.5 - (0.25 / 3) / 1.5])


def moved(folder: Path, count: int) -> tuple[float, int]:
    """dB on samples that were not seen, and layers: with positive inputs, errors of ternary weights add up."""
    weights = {"w": floats(1, 8, 4, 3, 3), "b": floats(2, 8), "v": floats(3, 8, 10), "c": floats(4, 10)}
    nodes = [
        node("Conv", "x w b", "h"),
        node("Relu", "h", "r"),
        node("GlobalAveragePool", "r", "p"),
        node("Flatten", "p", "f"),
        node("Gemm", "f v c", "y"),
    ]
    made = save(model("moved", nodes, [("x", (1, 4, 8, 8))], [("y", (1, 10))], weights), folder)
    chance = np.random.default_rng(0)
    feeds = [{"x": np.float32(chance.uniform(0.2, 1, (1, 4, 8, 8)))} for _ in range(64)]
    found = quantized(load(made), Samples(feeds[:count]), Recipe("minmax", weights="ternary"), folder, {})
    (pairs,) = outputs(made, found.file, feeds[48:])
    return decibels(pairs), found.corrected


def test_others_confirm_it(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    few, none = moved(tmp_path, 31)
    many, layers = moved(tmp_path, 48)
    assert (none, layers) == (0, 2) and many > few + 6
