"""A build that learns is compared with float64, call by call; what is wrong is seen and named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from mccompile.base.errors import CheckFailed, WrongUse
from mccompile.check.training_comparison import GRADIENT, LOSS, OUTPUT, STEP
from mccompile.driver import Options
from mccompile.measure import learning
from mccompile.measure.learning import TrainingCheck, check_learning
from mccompile.passes.learn.optimizers import optimizer
from mccompile.passes.learn.phase_graphs import Learning
from mccompile.toolchain.learning import TrainingRecord
from tests.python.test_trainer import network


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    onnx.save(network(), path)
    return path


def checked(model: Path, how: str = "sgd", loss: str = "cross_entropy:p", **more: Any) -> TrainingCheck:
    return check_learning(model, Learning(loss, "all", optimizer(how), **more), Options(), batches=4)


@pytest.mark.parametrize("more", [{}, {"accumulate": 2, "clip": 0.5}])
def test_all_that_it_tells_is_compared(model: Path, more: dict[str, Any]) -> None:
    found = checked(model, "adam,lr=0.01", **more)
    assert found.ok
    assert found.kinds == [LOSS, OUTPUT, GRADIENT, STEP]
    assert len(found.of(GRADIENT)) + found.bent == 4 * (1 + 4 + 8)  # all weights, each of four, single elements


def test_a_network_may_give_texts_beside_what_it_learns(model: Path, tmp_path: Path) -> None:
    net = onnx.load(model)
    net.graph.initializer.append(onnx.helper.make_tensor("known", onnx.TensorProto.STRING, [2], [b"a", b"b"]))
    net.graph.node.append(onnx.helper.make_node("Identity", ["known"], ["names"]))
    net.graph.output.append(onnx.helper.make_tensor_value_info("names", onnx.TensorProto.STRING, [2]))
    onnx.save(net, tmp_path / "named.onnx")
    assert checked(tmp_path / "named.onnx").ok


def test_gradients_that_are_used_at_once_are_seen_by_what_they_move(model: Path) -> None:
    found = checked(model, at_once=True)
    assert found.ok
    assert found.of(GRADIENT)
    with pytest.raises(WrongUse, match="does not show its gradients"):
        checked(model, "adam", at_once=True)


def _more(arrays: Any) -> Any:
    return [{name: array * np.float32(1.01) for name, array in each.items()} for each in arrays]


@pytest.mark.parametrize("field", ["sums", "losses", "outputs", "weights"])
def test_what_is_wrong_is_named(model: Path, field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = learning.learned

    def off(*given: Any) -> TrainingRecord:
        told = real(*given)
        if field == "losses":
            return replace(told, losses=[1.01 * loss for loss in told.losses])
        if field == "weights":  # those that are not there any more after `forget`
            return replace(told, weights=[*told.weights[:-1], _more(told.weights)[-1]])
        return replace(told, **{field: _more(getattr(told, field))})

    monkeypatch.setattr(learning, "learned", off)
    if field == "weights":
        with pytest.raises(CheckFailed, match="does not forget"):
            checked(model)
        return
    kind = {"sums": GRADIENT, "losses": LOSS, "outputs": OUTPUT}[field]
    found = checked(model)
    assert any(each.verdict == "wrong" for each in found.of(kind))
    assert "learns wrong" in str(found.failure(model))
