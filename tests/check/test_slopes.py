"""Slopes of a loss by differences: none where the loss bends, however little."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mccompile.check.learning import Reference


def slope(bend: float, at: float) -> float | None:
    """Of a parabola whose slope grows by `bend` at a place, in 0."""

    def loss(weights: Any, _: Any) -> float:
        w = float(weights["w"])
        return 0.5 * w + 20 * w**2 + bend * max(0.0, w - at)

    start, along = {"w": np.zeros(())}, {"w": np.ones(())}
    return Reference.slope(SimpleNamespace(loss=loss), start, [{}], along)  # type: ignore[arg-type]


def test_a_curve_has_a_slope() -> None:
    assert slope(0.0, 0.0) == pytest.approx(0.5)


@pytest.mark.parametrize("at", [0.0, -5e-6, 5e-6])
def test_a_small_bend_is_one(at: float) -> None:
    """By half a percent: less than slopes of a curve differ, more than is allowed for a gradient."""
    assert slope(0.0025, at) is None
