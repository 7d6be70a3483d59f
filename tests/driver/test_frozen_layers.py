"""Layers in front of the first one that learns are planned as in inference: the same memory, rows and tiles."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import mccompile
from mccompile.cli import run

BODY = """<ir_version: 8, opset_import: ["" : 17]> net (float[1, 1, 32, 32] x) => (float[1, 5] y) {
    a = Conv <pads = [1, 1, 1, 1]> (x, k1)  b = Relu(a)
    c = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (b, k2)  d = Relu(c)
    e = Conv <pads = [1, 1, 1, 1], strides = [2, 2]> (d, k3)  f = Relu(e)
    g = GlobalAveragePool(f)  h = Flatten(g)  y = Gemm(h, w, v) }"""
WEIGHTS = {"k1": (16, 1, 3, 3), "k2": (16, 16, 3, 3), "k3": (16, 16, 3, 3), "w": (16, 5), "v": (5,)}
OWN = 4 * (16 * 5 + 5) + 4 * 16  # the weights; the loss, the target and the rate, and what aligning takes


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    model, chance = onnx.parser.parse_model(BODY), np.random.default_rng(0)
    for name, shape in WEIGHTS.items():
        array = (chance.standard_normal(shape) / np.sqrt(prod(shape[1:]))).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    onnx.save(model, path)
    return path


def arena(words: list[str], out: Path) -> int:
    assert run([*words, "-o", str(out), "--budget", "ram=min", "--force"]) == 0
    return int(json.loads((out / "report.json").read_text(encoding="utf-8"))["arena_bytes"])


@pytest.mark.parametrize("flags", ["", "--recompute 1.5"])
def test_a_frozen_body_takes_the_memory_of_inference(net: Path, tmp_path: Path, flags: str) -> None:
    inferring = arena(["compile", str(net), *flags.split()], tmp_path)
    learning = ["train", str(net), "--loss", "cross_entropy:y", "--at-once", *flags.split()]
    assert inferring < arena(learning, tmp_path) <= inferring + OWN


def test_tiles_make_the_arena_smaller_and_what_is_learned_the_same(net: Path) -> None:
    asked = {"loss": "cross_entropy:y", "target": "generic", "prefer": "ram"}
    nets = [mccompile.train(net, **asked, recompute=factor) for factor in (1.0, 1.5)]
    assert nets[0].report["arena_bytes"] > nets[1].report["arena_bytes"]
    chance = np.random.default_rng(2)
    for label in range(3):
        x = chance.standard_normal((1, 1, 32, 32)).astype(np.float32)
        assert len({net.step(x, np.array([label]), rate=0.1) for net in nets}) == 1
        assert len({net.run(x)["y"].tobytes() for net in nets}) == 1


@pytest.mark.thorough
def test_code_with_tiles_is_made_again_as_it_was(net: Path, tmp_path: Path) -> None:
    """With its tiles and its most multiply-accumulates, which also say what a step computes again."""
    asked = ["train", str(net), "--loss", "cross_entropy:y", "--learn", "last:2", "--prefer", "ram"]
    assert run([*asked, "--recompute", "2", "-o", str(tmp_path)]) == 0
    was = (tmp_path / "net.mcb").read_bytes()
    assert run(["blob", str(net), "--for", str(tmp_path)]) == 0
    assert (tmp_path / "net.mcb").read_bytes() == was
