"""Weights that are rounded by samples: errors of similar inputs cancel, and windows are those of convolutions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.errors import MccWarning
from mccompile.base.quantizing import Recipe
from mccompile.frontend.load import load
from mccompile.quantize.adapted_rounding import _windows, rounded
from mccompile.quantize.bench import outputs
from mccompile.quantize.quantize import quantized
from mccompile.quantize.samples import Samples, decibels
from tests.small_models import floats, model, node, reference, save


def test_errors_of_equal_inputs_cancel() -> None:
    found = rounded(np.array([[0.4, 0.4, 3.0], [0.8, 0.8, -1.0]]), np.array([1.0, 2.0]), np.ones((3, 3)))
    assert found.sum(1).tolist() == [4.0, 0.0], "0.4 and 0.4 are 1 together; in steps of 2, 0.4, 0.4 and -0.5 are 0"


def test_inputs_that_have_nothing_in_common_are_rounded_each() -> None:
    rows = np.array([[0.4, 1.6, -0.4]])
    assert rounded(rows, np.ones(1), np.diag([3.0, 2.0, 0.0])).tolist() == [[0.0, 2.0, 0.0]]


@pytest.mark.parametrize(
    ("attributes", "shape"),
    [
        ({}, (7, 7)),
        ({"strides": [2, 1], "pads": [1, 0, 2, 1]}, (5, 8)),
        ({"dilations": [2, 1], "group": 2}, (5, 7)),
        ({"group": 4}, (7, 7)),
    ],
    ids=["plain", "strides", "dilations", "depthwise"],
)
def test_windows_are_what_weights_meet(attributes: dict[str, Any], shape: tuple[int, ...], tmp_path: Path) -> None:
    weights = floats(1, 8, 4 // attributes.get("group", 1), 3, 2)
    nodes, ends = [node("Conv", "x w", "y", **attributes)], [("y", (1, 8, *shape))]
    made, x = model("c", nodes, [("x", (1, 4, 9, 8))], ends, {"w": weights}), floats(2, 1, 4, 9, 8)
    wanted = reference(made, {"x": x})["y"]
    windows = _windows(next(iter(load(save(made, tmp_path)).nodes)), x, 1000)
    assert windows is not None
    got = np.einsum("gpk,gok->gop", windows, weights.reshape(len(windows), -1, windows.shape[-1]))
    np.testing.assert_allclose(got.reshape(wanted.shape), wanted, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def alike(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Samples]:
    """Dense layers over 64 inputs that follow four, as neighbouring pixels do."""
    pytest.importorskip("onnxruntime")
    chance = np.random.default_rng(0)
    nodes = [node("Gemm", "x w1 b1", "h", transB=1), node("Mul", "h h", "r"), node("MatMul", "r w2", "y")]
    weights = {"w1": floats(1, 32, 64), "b1": floats(2, 32), "w2": floats(3, 32, 10)}
    made = model("alike", nodes, [("x", (1, 64))], [("y", (1, 10))], weights)
    mixed = chance.normal(size=(80, 4)) @ chance.normal(size=(4, 64)) + 0.05 * chance.normal(size=(80, 64))
    feeds = [{"x": row[None].astype(np.float32)} for row in mixed]
    return save(made, tmp_path_factory.mktemp("alike")), Samples(feeds)


def quality(path: Path, samples: Samples, recipe: Recipe, folder: Path, first: int = 48) -> tuple[float, Any]:
    """On 16 samples, the first of which is given: by default on none of those that it is made of."""
    made = quantized(load(path), Samples(samples.feeds[:48]), recipe, folder, {})
    (pairs,) = outputs(path, made.file, samples.feeds[first : first + 16])
    return decibels(pairs), made


def test_samples_that_were_not_seen_confirm_it(alike: tuple[Path, Samples], tmp_path: Path) -> None:
    few, made = quality(*alike, Recipe("minmax", samples=16), tmp_path)
    assert made.adapted == 0
    many, made = quality(*alike, Recipe("minmax"), tmp_path)
    assert made.adapted == 2 and many > few + 2


def test_as_few_layers_stay_floats_as_the_decibels_take(alike: tuple[Path, Samples], tmp_path: Path) -> None:
    plain, made = quality(*alike, Recipe(samples=16), tmp_path, first=0)
    _, made = quality(*alike, Recipe(samples=16, sensitivity=plain - 1), tmp_path)
    assert made.left == () and made.gains == ()
    best, one = quality(*alike, Recipe(samples=16, auto=1), tmp_path, first=0)
    reached, made = quality(*alike, Recipe(samples=16, sensitivity=(plain + best) / 2), tmp_path, first=0)
    assert made.left == one.left == (one.gains[0][0],) and reached == best
    with pytest.warns(MccWarning, match=r"outputs do not reach 500 dB: [\d.]+ dB are reached with \d of 2 layers"):
        quality(*alike, Recipe(samples=16, sensitivity=500), tmp_path)
