"""Ways to improve weights and biases are taken where outputs come closer, on samples that they have not seen too."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mccompile.base.constant import Constant
from mccompile.base.dtypes import i32
from mccompile.base.quantizing import Recipe
from mccompile.frontend.load import load
from mccompile.graph.ir import Graph, Value
from mccompile.quantize import improved
from mccompile.quantize.quantize import quantized
from mccompile.quantize.samples import Feed, Samples
from tests.small_models import floats, model, node, save

pytest.importorskip("onnxruntime")
OUTPUTS = 10


def given(folder: Path) -> tuple[Path, Samples]:
    nodes = [node("Gemm", "x w b", "h"), node("Tanh", "h", "y")]
    weights = {"w": floats(1, 16, OUTPUTS), "b": floats(2, OUTPUTS)}
    path = save(model("line", nodes, [("x", (1, 16))], [("y", (1, OUTPUTS))], weights), folder)
    rows = np.random.default_rng(0).normal(size=(40, 1, 16)).astype(np.float32)
    return path, Samples([{"x": row} for row in rows])


def test_biases_that_help_their_own_samples_only_are_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, samples = given(tmp_path)
    count = len(samples.feeds)

    def spoil(graph: Graph, feeds: Sequence[Feed], *_: Any) -> int:
        """Biases that are as they were where all samples are given, so what is made of a half has to show it."""
        biases = [value for value in graph.values() if value.constant is not None and value.type.dtype is i32]
        for value in biases if len(feeds) < count else ():
            assert value.constant is not None
            other = Value.of_constant("spoilt", Constant.of(value.constant.array + np.int32(10_000)))
            if value.type.count == OUTPUTS:
                graph.set_input(*next(iter(value.uses)), other)
        return 1

    monkeypatch.setattr(improved, "correct_biases", spoil)
    monkeypatch.setattr(improved, "_WAYS", ((False, True),))
    assert quantized(load(path), samples, Recipe("minmax"), tmp_path, {}).corrected == 0


def test_the_closest_way_is_the_one_that_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, samples = given(tmp_path)
    closeness = []
    for ways in ((), ((False, True),), ((True, False),), improved._WAYS):
        monkeypatch.setattr(improved, "_WAYS", ways)
        made = quantized(load(path), samples, Recipe("minmax"), tmp_path, {})
        float_runs = [(feed, improved.Oracle(made.float_file).run(feed)) for feed in samples.feeds]
        closeness.append(improved._closeness([(made.file, float_runs)]))
    assert closeness[-1] >= closeness[0] and closeness[-1] >= min(closeness[1:-1])
