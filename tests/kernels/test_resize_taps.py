"""resize in portable C: what does not change from element to element is read outside of the innermost loop."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from mccompile.driver import Options, compile
from tests.small_models import floats, model, node, save


@pytest.mark.parametrize("prefer", ["balanced", "time"])
@pytest.mark.parametrize(("mode", "read_inside"), [("linear", False), ("cubic", True)])
def test_places_and_weights_are_read_once_for_all_channels(
    mode: str, read_inside: bool, prefer: str, tmp_path: Path
) -> None:
    weights = {"w": floats(0, 24, 24, 3, 3), "s": np.array([1, 1, 2, 1.5], np.float32)}
    resize = helper.make_node("Resize", ["a", "", "s"], ["b"], mode=mode)
    nodes = [node("Conv", "x w", "a", pads=[1] * 4), resize, node("Conv", "b w", "y", pads=[1] * 4)]
    path = save(model("r", nodes, [("x", (1, 24, 6, 6))], [("y", (1, 24, 12, 9))], weights), tmp_path)
    package = compile(path, Options(target="cortex-m4", prefer=prefer))
    (function,) = [f for f in package.plan.functions if f.kernel.id.startswith("resize/")]
    text = package.files["r_kernels.c"].decode()
    (body,) = re.findall(rf"^void {function.name}\(.*?^}}", text, re.M | re.S)
    inside = body.split("for (")[-1]
    assert "x[" in inside and bool(re.search(r"\be\d\[", inside)) == read_inside
