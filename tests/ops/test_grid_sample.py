"""Pictures of one element are sampled, too, by each way to find a place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mccompile
from tests.small_models import model, node, save


@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize(("padding", "align"), [("reflection", 1), ("border", 0), ("border", 1)])
def test_a_picture_of_one_element_is_that_everywhere(mode: str, padding: str, align: int, tmp_path: Path) -> None:
    nodes = [node("GridSample", "x grid", "y", mode=mode, padding_mode=padding, align_corners=align)]
    shapes = [("x", (2, 3, 1, 1)), ("grid", (2, 4, 4, 2))]
    path = save(model("one", nodes, shapes, [("y", (2, 3, 4, 4))], {}, opset=16), tmp_path)
    rng = np.random.default_rng(0)
    x, grid = rng.normal(size=(2, 3, 1, 1)).astype(np.float32), rng.uniform(-3, 3, (2, 4, 4, 2)).astype(np.float32)
    found = mccompile.load(path, target="native")(x, grid)["y"]
    np.testing.assert_allclose(found, np.broadcast_to(x, found.shape), rtol=1e-5)
