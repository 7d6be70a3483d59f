"""Weights that moved are kept behind the last reader of the old ones, if that saves memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

from mccompile.cli import run
from mccompile.driver import Options
from mccompile.driver.training import train
from mccompile.passes.learn.phase_graphs import Learning
from mccompile.passes.program import bufferize

CHANNELS = 16
ASKED = Learning("mse:y", "all", at_once=True)


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """Convolutions whose weights take as much as what they make."""
    shape = f"float[1, {CHANNELS}, 3, 3]"
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]> g ({shape} x) => ({shape} y)
        {{ a = Conv(x, u) b = Relu(a) c = Conv(b, v) d = Relu(c) e = Conv(d, w) y = Relu(e) }}""")
    chance = np.random.default_rng(0)
    for name in "uvw":
        weights = chance.standard_normal((CHANNELS, CHANNELS, 1, 1)).astype(np.float32) / 4
        model.graph.initializer.append(numpy_helper.from_array(weights, name))
    onnx.save(model, tmp_path / "net.onnx")
    return tmp_path / "net.onnx"


def arena(net: Path) -> int:
    made = train(net, ASKED, Options(target="cortex-m4"))
    return int(json.loads(made.files["report.json"])["arena_bytes"])


def test_a_weight_that_moved_does_not_lie_beside_the_old_one(net: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    early = arena(net)
    monkeypatch.setattr(bufferize, "bring_states", lambda *_: None)
    assert early <= arena(net) - 4 * CHANNELS * CHANNELS


def test_what_is_learned_is_the_same(net: Path) -> None:
    assert run(["check", str(net), "--loss", "mse:y", "--learn", "all", "--at-once", "--optimizer", "sgd,lr=0.1"]) == 0
