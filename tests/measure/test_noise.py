"""Tensors of a float model and of its integers find each other by layers where names differ."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mccompile.frontend.load import load
from mccompile.frontend.original import Original
from mccompile.measure.noise import noise, on_steps, twins, twins_by_work
from tests.small_models import model, node, save

W = {"w": np.ones((4, 4), np.float32), "s": np.float32(0.5), "z": np.int8(0)}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    plain = model("plain", [node("MatMul", "x w", "a"), node("Relu", "a", "y")], [("x", (2, 4))], [("y", (2, 4))], W)
    rounded = [
        node("MatMul", "in w", "product"),
        node("QuantizeLinear", "product s z", "q"),
        node("DequantizeLinear", "q s z", "out"),
    ]
    other = model("other", rounded, [("in", (2, 4))], [("out", (2, 4))], W)
    return save(plain, tmp_path), save(other, tmp_path)


def test_a_layer_ends_behind_its_activation_and_its_rounding(files: tuple[Path, Path]) -> None:
    assert twins_by_work(load(files[0]), load(files[1])) == {"y": "out"}


def test_dequantized_weights_are_no_layer(tmp_path: Path) -> None:
    """Both files may have them by one name, and nothing else."""
    made = [node("DequantizeLinear", "q s z", "kernel_dequant"), node("MatMul", "x kernel_dequant", "y")]
    weights = {**W, "q": np.ones((4, 4), np.int8)}
    plain = Original(save(model("plain", made, [("x", (2, 4))], [("y", (2, 4))], weights), tmp_path))
    assert plain.inner == ["kernel_dequant"] and twins(plain, plain) == {"y": "y"}


def test_noise_is_that_of_rounding(files: tuple[Path, Path]) -> None:
    x = np.full((2, 4), 0.3, np.float32)  # 1.2 becomes 1.0
    found = noise(*files, [{"x": x}], {"y": "out"}, handed=lambda feed: {"in": feed["x"]})
    assert found["y"] == pytest.approx(20 * np.log10(1.2 / 0.2), abs=0.01)


def test_a_step_has_the_noise_of_the_last_tensor_that_it_makes(files: tuple[Path, Path]) -> None:
    graph = load(files[1])
    nodes = [name for node in graph.nodes for name in node.provenance]
    steps = [{"nodes": nodes[:1]}, {"nodes": nodes}, {"nodes": ["other"]}]
    assert on_steps(steps, graph, {"product": float("inf"), "out": 12.345}) == [
        "exact",
        pytest.approx(12.345, abs=0.01),
        None,
    ]


def test_a_dequantized_tensor_belongs_to_the_layer_of_its_integers(tmp_path: Path) -> None:
    """The step that reads the integers has their DequantizeLinear, and another noise."""
    nodes = [
        node("QuantizeLinear", "x s z", "p"),
        node("DequantizeLinear", "p s z", "before"),
        node("MatMul", "before w", "product"),
        node("QuantizeLinear", "product s z", "q"),
        node("DequantizeLinear", "q s z", "between"),
        node("Tanh", "between", "y"),
    ]
    graph = load(save(model("layers", nodes, [("x", (2, 4))], [("y", (2, 4))], W), tmp_path))
    names = [name for each in graph.nodes for name in each.provenance]
    steps = [{"nodes": names[:1]}, {"nodes": names[1:4]}, {"nodes": names[4:]}]
    assert on_steps(steps, graph, {"before": 40.0, "between": 30.0, "y": 20.0}) == [40.0, 30.0, 20.0]
    assert on_steps(steps, graph, {"before": 40.0, "between": 30.0}) == [40.0, 30.0, None]
