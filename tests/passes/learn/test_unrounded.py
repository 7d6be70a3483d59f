"""Quantized networks learn: what is frozen stays in integers, what learns and what follows is computed in floats."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

import mccompile
from mccompile.check.training_comparison import GRADIENT
from mccompile.cli import run
from mccompile.driver import Options
from mccompile.measure.learning import check_learning
from mccompile.passes.learn.optimizers import optimizer
from mccompile.passes.learn.phase_graphs import Learning
from tests.passes.learn.quantized_net import quantized_net
from tests.passes.qdq_graphs import BLOCKS, Net, network
from tests.thorough import some

OF_LAST = 4 * (8 * 4 + 4) + 4 * 16  # weights and bias; the loss, the target and the rate, and what aligning takes


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    onnx.save(quantized_net(), path)
    return path


@some(1, "blocks", [("conv", "pool", "conv"), ("conv", "add", "squash"), ("conv", "turn", "dense")])
def test_what_random_quantized_networks_learn_is_right(tmp_path: Path, blocks: tuple[str, ...]) -> None:
    model = network(7, [BLOCKS.index(getattr(Net, block)) for block in blocks])
    onnx.save(model, tmp_path / "net.onnx")
    asked = Learning(f"mse:{model.graph.output[0].name}", "all", optimizer("sgd,lr=0.01"))
    found = check_learning(tmp_path / "net.onnx", asked, Options(target="generic"), batches=1)
    assert found.ok
    assert found.of(GRADIENT)


@some(1, "learn", ["last:1", "last:2", "all"])
def test_what_a_quantized_network_learns_is_right(net: Path, learn: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", str(net), "--loss", "cross_entropy:p", "--learn", learn, "--optimizer", "sgd,lr=0.5"]
    assert run([*words, "--runs", "2"]) == 0
    assert "gradients" in capsys.readouterr().out


def test_a_frozen_body_stays_in_integers(net: Path, tmp_path: Path) -> None:
    flags = ["--target", "cortex-m4", "--budget", "ram=min"]
    assert run(["compile", str(net), "-o", str(tmp_path / "infers"), *flags]) == 0
    learning = ["train", str(net), "--loss", "cross_entropy:p", "--at-once"]
    assert run([*learning, "-o", str(tmp_path / "learns"), *flags]) == 0
    arenas = [
        json.loads((tmp_path / which / "report.json").read_text())["arena_bytes"] for which in ("infers", "learns")
    ]
    assert arenas[0] < arenas[1] <= arenas[0] + OF_LAST


@some(1, "learn", ["last:1", "all"])
def test_the_file_with_what_was_learned_infers_as_the_program(net: Path, tmp_path: Path, learn: str) -> None:
    trainer, chance = mccompile.train(net, loss="cross_entropy:p", learn=learn), np.random.default_rng(5)
    samples = chance.integers(-128, 128, (4, 1, 3, 12, 12)).astype(np.int8)
    for _ in range(15):
        for label, sample in enumerate(samples):
            trainer.step(sample, np.array([label]), rate=0.003)
    assert sum(trainer.losses[-4:]) < 0.9 * sum(trainer.losses[:4])
    saved = mccompile.load(trainer.save(tmp_path / "learned.onnx"))
    for sample in samples:
        mine, its = trainer.run(sample)["p"], saved(sample)["p"]
        assert mine.dtype == its.dtype == np.int8
        assert np.abs(mine.astype(int) - its.astype(int)).max() <= 1  # rounded at a half
