"""Ranges that are found by trying: narrower where what lies outside does not matter; a gain of one sample is luck."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from mccompile.base.quantizing import Recipe
from mccompile.frontend.load import load
from mccompile.quantize.agreement import Agreement, mean_decibels
from mccompile.quantize.bench import outputs
from mccompile.quantize.quantize import Quantized, quantized
from mccompile.quantize.samples import Samples
from tests import small_models
from tests.small_models import node, save

pytest.importorskip("onnxruntime")
LOUD = 3  # the feature that the network does not look at


def dense(tmp_path: Path) -> Path:
    weights = {"w": small_models.floats(1, 24, 10)}
    weights["w"][LOUD] = 0
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "y")]
    return save(small_models.model("dense", nodes, [("x", (1, 24))], [("y", (1, 10))], weights), tmp_path)


def samples(count: int, seed: int, loud: float) -> Samples:
    rows = np.random.default_rng(seed).normal(0, 0.3, (count, 1, 24)).astype(np.float32)
    rows[:, :, LOUD] *= loud
    return Samples([{"x": row} for row in rows])


def made(tmp_path: Path, given: Samples, recipe: Recipe) -> Quantized:
    return quantized(load(dense(tmp_path)), given, recipe, tmp_path, {})


def width(found: Quantized, tensor: str) -> float:
    arrays = {entry.name: numpy_helper.to_array(entry) for entry in onnx.load(found.file).graph.initializer}
    return float(arrays[f"{tensor}_scale"]) * 255


def test_what_does_not_matter_is_cut_off(tmp_path: Path) -> None:
    given, test = samples(40, 0, 20), samples(60, 1, 20).feeds
    widths, decibels = [], []
    for method in ("minmax", "search"):
        found = made(tmp_path, given, Recipe(method))
        widths.append(width(found, "x"))
        decibels.append(mean_decibels(outputs(found.float_file, found.file, test)))
        assert found.searched == 0 or method == "search"
    assert widths[1] < 0.6 * widths[0]
    assert decibels[1] > decibels[0] + 2


@pytest.mark.parametrize("rare", [1, 12], ids=["one", "one in 27,000"])
def test_the_search_begins_without_the_rarest_values(rare: int, tmp_path: Path) -> None:
    """From the extremes it would end at a third of them, at best."""
    weights = {"w": small_models.floats(1, 8192, 10)}
    weights["w"][LOUD] = 0
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "y")]
    path = save(small_models.model("wide", nodes, [("x", (1, 8192))], [("y", (1, 10))], weights), tmp_path)
    rows = np.random.default_rng(0).uniform(-0.01, 0.01, (40, 1, 8192)).astype(np.float32)
    rows[7 : 7 + rare, 0, LOUD] = 1
    found = quantized(load(path), Samples([{"x": row} for row in rows]), Recipe(), tmp_path, {})
    assert width(found, "x") < 0.1


def test_one_sample_outside_counts_as_much_as_it_costs(tmp_path: Path) -> None:
    """The largest of few samples lies outside of what the others reach: so will later ones."""
    nodes = [node("MatMul", "x w", "y")]
    graph = small_models.model("line", nodes, [("x", (1, 4))], [("y", (1, 3))], {"w": small_models.floats(1, 4, 3)})
    rows = np.random.default_rng(0).uniform(-1, 1, (24, 1, 4)).astype(np.float32)
    rows[7, 0, 0] = 1.08
    found = quantized(load(save(graph, tmp_path)), Samples([{"x": row} for row in rows]), Recipe(), tmp_path, {})
    assert width(found, "x") > 1.05 * float(np.ptp(rows))


def test_few_samples_leave_ranges_as_they_are(tmp_path: Path) -> None:
    found = made(tmp_path, samples(5, 0, 20), Recipe())
    assert found.searched == 0


@pytest.mark.parametrize("symmetric", [False, True])
def test_zero_points_are_left_out_of_searched_ranges_too(symmetric: bool, tmp_path: Path) -> None:
    found = made(tmp_path, samples(40, 0, 20), replace(Recipe(), symmetric=symmetric))
    arrays = {entry.name: numpy_helper.to_array(entry) for entry in onnx.load(found.file).graph.initializer}
    assert found.searched and (not arrays["x_zero_point"].any() or not symmetric)


def test_a_gain_of_one_sample_is_luck() -> None:
    before = Agreement(20.0, np.full(20, 20.0))
    all_win = Agreement(20.5, np.full(20, 20.5))
    one_wins = Agreement(20.5, np.r_[np.full(19, 20.0), 30.0])
    assert all_win.gain(before, 2) == pytest.approx(0.5)
    assert one_wins.gain(before, 2) < 0
