"""An infinity reaches as many results of Winograd's method as docs/speed.md says, and none of another picture or
group."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mccompile.driver import Options, compile_graph
from mccompile.frontend.load import load_proto
from mccompile.measure.building import build
from mccompile.targets import api
from tests.small_models import floats, model, node

TARGET = "x86-64-v3"
FURTHER = {4: 2, 2: 0}  # positions beyond those of the window


@pytest.mark.skipif(not api.runs_here(api.load(TARGET)), reason=f"needs {TARGET}")
@pytest.mark.parametrize("tile", FURTHER)
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_it_stays_near_its_place_in_its_picture_and_group(tile: int, value: float) -> None:
    shape, weights = (2, 32, 16, 16), (32, 16, 3, 3)
    conv = node("Conv", "x w", "y", pads=[1] * 4, group=2)
    made = model("conv", [conv], [("x", [*shape])], [("y", [*shape])], {"w": floats(1, *weights)})
    options = Options(target=TARGET, prefer="time", winograd=tile)
    package = compile_graph(load_proto(made, Path()), options, "conv")
    assert any("winograd" in function.kernel.id for function in package.plan.functions)
    built, seen = build(package, options.resolved_target()), set[int]()
    for place in range(4, 12):
        x = floats(0, *shape)
        x[1, 20, place, 7] = value
        affected = np.argwhere(~np.isfinite(built.run({"x": x})["y"]))
        assert set(affected[:, 0]) == {1} and set(affected[:, 1]) == {*range(16, 32)}
        assert {*affected[:, 2]} >= {place - 1, place, place + 1}
        seen |= {abs(int(row) - place) for row in affected[:, 2]}
        assert abs(affected[:, 3] - 7).max() <= 1 + FURTHER[tile]
    assert max(seen) == 1 + FURTHER[tile]
