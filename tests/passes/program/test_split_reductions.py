"""Reductions to few results side by side combine rows of several times as many first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mccompile
from tests.small_models import model, node, save


def _model(op: str, shape: tuple[int, ...], axes: tuple[int, ...], folder: Path) -> Path:
    found = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    given = {"axes": np.array(axes, np.int64)}
    nodes = [node(op, "x axes", "y", keepdims=1)]
    return save(model("few", nodes, [("x", shape)], [("y", found)], given, opset=18), folder)


@pytest.mark.parametrize(
    ("op", "shape", "axes"),
    [
        ("ReduceMax", (3000, 2), (0,)),
        ("ReduceMax", (3001, 2), (0,)),
        ("ReduceMean", (3, 1009, 3), (1,)),
        ("ReduceL2", (2, 331, 5), (1,)),
        ("ReduceMean", (2, 30, 40, 3), (1, 2)),
        ("ReduceLogSumExp", (3, 400, 3), (1,)),
        ("ReduceL2", (1, 24, 25, 5), (0, 1, 2)),
    ],
)
def test_results_stay_what_they_are(op: str, shape: tuple[int, ...], axes: tuple[int, ...], tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    if op == "ReduceMax":
        x[777, 1] = np.nan
    wide = x.astype(np.float64)
    want = {
        "ReduceMax": lambda: wide.max(axes, keepdims=True),
        "ReduceMean": lambda: wide.mean(axes, keepdims=True),
        "ReduceLogSumExp": lambda: np.log(np.exp(wide).sum(axes, keepdims=True)),
        "ReduceL2": lambda: np.sqrt((wide**2).sum(axes, keepdims=True)),
    }[op]()
    path = _model(op, shape, axes, tmp_path)
    np.testing.assert_allclose(mccompile.load(path, target="native")(x)["y"], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("shape", "axes", "kernel"),
    [
        ((3000, 2), (0,), "reduce/f32_strided_lanes__vec"),
        ((300, 163, 3), (0, 1), "reduce/f32_strided_lanes__vec"),
        ((3001, 2), (0,), "reduce/f32_strided_lanes__vec"),  # a prime number
    ],
)
def test_rows_are_combined_in_vectors(
    shape: tuple[int, ...], axes: tuple[int, ...], kernel: str, tmp_path: Path
) -> None:
    path = _model("ReduceMax", shape, axes, tmp_path)
    steps = mccompile.compile(path, mccompile.Options(target="x86-64-v3")).report["steps"]
    assert steps[0]["kernel"] == kernel


def test_a_number_has_no_axes(tmp_path: Path) -> None:
    nodes = [node("ReduceMean", "x", "y", noop_with_empty_axes=1, keepdims=1)]
    path = save(model("number", nodes, [("x", ())], [("y", ())], {}, opset=18), tmp_path)
    options = mccompile.Options(target="native")
    assert not mccompile.compile(path, options).report.get("left_out")
