"""The comparison of quantizers: networks at random are of every family and say something, and what is below is said."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks.drawn_networks import FAMILIES, drawn
from benchmarks.quantizers import BEHIND, Row, networks, shown
from mccompile.check.oracle import Oracle

pytest.importorskip("onnxruntime")
PAGE = Path(__file__).resolve().parents[1] / "docs" / "quantization.md"


def test_each_family_answers_its_inputs_differently(tmp_path: Path) -> None:
    found = list(islice(drawn(5), 2 * len(FAMILIES)))
    assert {each.name.split("_")[0] for each in found} == set(FAMILIES)
    for each in found:
        onnx.save(each.model, tmp_path / "drawn.onnx")
        oracle = Oracle(tmp_path / "drawn.onnx")
        runs = np.stack([next(iter(oracle.run(feed).values())) for feed in each.feeds(4)])
        assert np.isfinite(runs).all() and np.ptp(runs, axis=0).max() > 1e-3, each.name


def test_a_network_does_not_depend_on_the_data_of_others() -> None:
    one, other = drawn(3), drawn(3)
    next(one).feeds(5)
    next(other)
    first, second = next(one), next(other)
    assert first.model == second.model
    np.testing.assert_array_equal(first.feeds(1)[0]["x"], second.feeds(1)[0]["x"])


def test_what_is_further_below_than_luck_is_counted() -> None:
    rows = [Row("near", 30.0, 30.01 - BEHIND, 0), Row("far", 30.0, 29.99 - BEHIND, 0), Row("alone", -np.inf, 9.0, 0)]
    text = shown(rows)
    assert [line.split()[0] for line in text.splitlines() if line.endswith("below")] == ["far"]
    assert "3 networks, 1 more than" in text and "1 that it cannot quantize" in text


def test_the_page_has_the_networks_of_the_tool(tmp_path: Path) -> None:
    _, _, table = PAGE.read_text().partition("| network | onnxruntime | mccompile |\n|---|--:|--:|\n")
    named = [line.split(" | ")[0].removeprefix("| ") for line in table.partition("\n\n")[0].splitlines()]
    assert named == [network.name for network in networks(tmp_path, None)]
