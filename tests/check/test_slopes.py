"""Slopes of a loss by differences: none where the loss bends, however little."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest

from mccompile.check.learning import Arrays, Reference
from mccompile.frontend.judged import judged as judge_graph
from mccompile.judge.rules import NoWitness
from mccompile.passes.learn.phase_graphs import Learning


def slope(bend: float, at: float) -> float | None:
    """Of a parabola whose slope grows by `bend` at a place, in 0."""

    def loss(weights: Any, _: Any) -> float:
        w = float(weights["w"])
        return 0.5 * w + 20 * w**2 + bend * max(0.0, w - at)

    start, along = {"w": np.zeros(())}, {"w": np.ones(())}
    return Reference.slope(SimpleNamespace(loss=loss, _rounding=None), start, [{}], along)  # type: ignore[arg-type]


def test_a_curve_has_a_slope() -> None:
    assert slope(0.0, 0.0) == pytest.approx(0.5)


@pytest.mark.parametrize("at", [0.0, -5e-6, 5e-6])
def test_a_small_bend_is_one(at: float) -> None:
    """By half a percent: less than slopes of a curve differ, more than is allowed for a gradient."""
    assert slope(0.0025, at) is None


SCALED = """<ir_version: 10, opset_import: ["" : 20]> net (float[1,8] x) => (float[1,8] y)
<float s = {0.066}, float[8] b = {2, -1, 3, 0, 1, -2, 2, -3}, float[8] g = {1, 3, 2, 1, 3, 2, 1, 2}> {
  p = Mul(x, s)
  q = Add(p, b)
  y = LayerNormalization(q, g)
}"""

PAIRS = """<ir_version: 10, opset_import: ["" : 20]> net (float[1,8] x) => (float[4] y)
<float s = {0.066}, float[8] b = {2, -1, 3, 0, 1, -2, 2, -3}, int64[2] p = {4, 2}, int64[1] a = {1}> {
  m = Mul(x, s)
  q = Add(m, b)
  r = Reshape(q, p)
  n = MeanVarianceNormalization <axes: ints = [1]> (r)
  y = ReduceSumSquare <keepdims: int = 0> (n, a)
}"""

SHIFTED = """<ir_version: 10, opset_import: ["" : 20]> net (float[1,8] x) => (float[1,8] y)
<float s = {0.066}, float c = {0.01}, float[8] g = {1, 3, 2, 1, 3, 2, 1, 2}> {
  n = LayerNormalization(x, g)
  m = Mul(n, c)
  q = Add(m, s)
  y = LayerNormalization <epsilon: float = 1e-12> (q, g)
}"""


@pytest.mark.parametrize(("text", "least"), [(SCALED, 1e-6), (PAIRS, 1e-6), (SHIFTED, 1e-4)])
def test_slopes_that_cancel_show_what_rounding_leaves(text: str, least: float) -> None:
    """A normalization takes a scale or a shift out again, so the slope is nearly 0: float32 leaves far more."""
    judged, weights, batch = _scaled(text)
    exact = judged.slope(weights, [batch], {"s": np.ones(())})
    moved = [judged.rounding(np.random.default_rng(n)).slope(weights, [batch], {"s": np.ones(())}) for n in range(8)]
    assert exact is not None and all(each is not None for each in moved)
    spread = max(abs(each - exact) for each in moved if each is not None)
    assert least < spread < 1e-3


def test_values_that_float32_does_not_hold_are_no_reference() -> None:
    judged, weights, batch = _scaled(SCALED)
    with pytest.raises(NoWitness, match="beyond the range of float32"):
        judged.output({**weights, "g": np.full(8, 3e38)}, batch)


def _scaled(text: str) -> tuple[Reference, Arrays, Arrays]:
    judged = Reference(judge_graph(onnx.parser.parse_model(text)), Learning("mse:y", "s"))
    chance = np.random.default_rng(1)
    x = chance.normal(1200, 400, (1, 8)).astype(np.float32)
    target = np.ones(judged.output({}, {"x": x}).shape, np.float32)
    return judged, {"s": np.asarray(0.066, np.float32)}, {"x": x, "target": target}
