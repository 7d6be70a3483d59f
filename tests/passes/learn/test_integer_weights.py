"""Weights of 8 bits learn as integers: nothing of them is kept in floats, and inference rounds as the file says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import mccompile
from mccompile.base.errors import MccWarning
from mccompile.check.training_comparison import GRADIENT, STEP
from mccompile.cli import run
from mccompile.driver import Options
from mccompile.measure.learning import check_learning
from mccompile.passes.learn.integer_weights import LearnDtype
from mccompile.passes.learn.optimizers import optimizer
from mccompile.passes.learn.phase_graphs import Learning, Saved
from tests.passes.learn.quantized_net import quantized_net
from tests.python.test_trainer import network
from tests.thorough import some

# A uint8 weight with a scale and a zero point per channel, transposed, behind a Relu; its bias has scales, too.
BY_CHANNEL = """<ir_version: 8, opset_import: ["" : 17]> net (float[2, 6] a) => (float[2, 3] y) {
    q = QuantizeLinear(a, s, z)  x = DequantizeLinear(q, s, z)
    w = DequantizeLinear <axis = 0> (wq, ws, wz)  b = DequantizeLinear <axis = 0> (bq, bs)
    c = Gemm <transB = 1> (x, w, b)  r = Relu(c)  rq = QuantizeLinear(r, s, z)  y = DequantizeLinear(rq, s, z) }"""


def by_channel() -> onnx.ModelProto:
    model, chance = onnx.parser.parse_model(BY_CHANNEL), np.random.default_rng(4)
    arrays: dict[str, Any] = {"s": np.float32(0.037), "z": np.array(-7, np.int8)}
    arrays["wq"], arrays["bq"] = chance.integers(0, 256, (3, 6)), chance.integers(-900, 900, 3).astype(np.int32)
    arrays |= {"wq": arrays["wq"].astype(np.uint8), "wz": np.full(3, 121, np.uint8)}
    arrays |= {"ws": np.array([0.011, 0.03, 0.007], np.float32), "bs": np.array([0.0004, 0.0011, 0.0003], np.float32)}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(a), name) for name, a in arrays.items())
    return model


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "net.onnx"
    onnx.save(quantized_net(), path)
    return path


def samples(count: int = 4) -> list[Any]:
    chance = np.random.default_rng(5)
    return list(chance.integers(-128, 128, (count, 1, 3, 12, 12)).astype(np.int8))


def taught(net: Path, times: int = 15, rate: float = 0.003, **more: Any) -> mccompile.Trainer:
    trainer = mccompile.train(net, loss="cross_entropy:p", learn_dtype="int8", **more)
    for _ in range(times):
        for label, sample in enumerate(samples()):
            trainer.step(sample, np.array([label]), rate=rate)
    return trainer


@some(1, "how", ["sgd,lr=0.5", "adam,lr=0.02,weight_decay=0.1", "momentum,lr=0.1"])
@pytest.mark.parametrize("learn", ["last:1", "all", "kq,w,bq"])
def test_what_integers_learn_is_right(net: Path, learn: str, how: str) -> None:
    asked = Learning("cross_entropy:p", learn, optimizer(how), clip=2.0, learn_dtype=LearnDtype.INT8)
    found = check_learning(net, asked, Options(), batches=3)
    assert found.ok
    assert found.of(GRADIENT)
    assert len(found.of(STEP)) >= 6


def test_scales_by_channel_and_zero_points(tmp_path: Path) -> None:
    onnx.save(by_channel(), tmp_path / "net.onnx")
    asked = Learning("mse:y", "all", optimizer("adagrad,lr=0.05"), learn_dtype=LearnDtype.INT8)
    found = check_learning(tmp_path / "net.onnx", asked, Options(), batches=4)
    assert found.ok
    assert found.of(STEP)


@some(1, "learn", ["last:1", "all"])
def test_the_saved_file_infers_with_the_same_bits(net: Path, tmp_path: Path, learn: str) -> None:
    trainer = taught(net, learn=learn)
    assert sum(trainer.losses[-4:]) < 0.6 * sum(trainer.losses[:4])
    file = trainer.save(tmp_path / "learned.onnx")
    was, now = quantized_net().graph, onnx.load(file).graph
    assert [node.op_type for node in now.node] == [node.op_type for node in was.node]
    saved = mccompile.load(file)
    for sample in samples(20):
        np.testing.assert_array_equal(trainer.run(sample)["p"], saved(sample)["p"])


def test_floats_have_no_integers_to_learn_in(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "net.onnx")
    with pytest.warns(MccWarning, match="--learn-dtype int8 changes nothing"):
        trainer = mccompile.train(tmp_path / "net.onnx", loss="cross_entropy:p", learn_dtype="int8")
    assert {array.dtype for array in trainer.weights().values()} == {np.dtype(np.float32)}


def test_steps_at_once_are_the_same(net: Path) -> None:
    later, now = taught(net, 3, learn="all"), taught(net, 3, learn="all", at_once=True)
    assert later.losses == now.losses
    for name, array in later.weights().items():
        assert array.dtype in (np.int8, np.int32)
        np.testing.assert_array_equal(array, now.weights()[name])


@pytest.mark.thorough
def test_small_steps_move_weights_as_far_on_average(net: Path) -> None:
    """A hundredth of a scale each, which rounding to the nearest would lose."""
    floats = mccompile.train(net, loss="cross_entropy:p", learn="w", optimizer="sgd")
    integers = mccompile.train(net, loss="cross_entropy:p", learn="w", optimizer="sgd", learn_dtype="int8")
    first = floats.weights()["w"]
    for _ in range(400):
        for trainer in (floats, integers):
            trainer.step(samples()[0], np.array([2]), rate=1e-5)
    moved = (floats.weights()["w"] - first) / 0.01
    got = integers.weights()["wq"] - first / np.float32(0.01)
    assert np.abs(moved).max() > 1
    assert np.abs(got - moved).max() < 1.6


def test_a_gradient_of_zero_moves_nothing(net: Path) -> None:
    trainer = taught(net, 20, rate=0.0, learn="all")
    graph = {tensor.name: numpy_helper.to_array(tensor) for tensor in quantized_net().graph.initializer}
    for name, array in trainer.weights().items():
        np.testing.assert_array_equal(array, graph[name])


def test_what_rounds_is_saved_with_the_optimizer(net: Path) -> None:
    from mccompile.driver.training import train

    def stored(save: Saved) -> list[str]:
        asked = Learning("cross_entropy:p", save=save, optimizer=optimizer("adam"), learn_dtype=LearnDtype.INT8)
        return [state.tensor.name for state in train(net, asked, Options()).plan.states if state.stored]

    assert set(stored(Saved.WEIGHTS)) == {"wq", "vq"}
    assert {"steps", "wq.mean"} <= set(stored(Saved.OPTIMIZER))


def test_at_once_shows_no_gradients(net: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["check", str(net), "--loss", "cross_entropy:p", "--at-once", "--learn-dtype", "int8"]
    assert run(words) == 2
    assert "integers do not show them" in capsys.readouterr().err


def test_computed_weights_are_rounded_once(tmp_path: Path) -> None:
    """As constant ones are: inputs instead of initializers change no bit."""
    constant, given = by_channel(), by_channel()
    for tensor in [t for t in given.graph.initializer if t.name in ("wq", "bq")]:
        given.graph.initializer.remove(tensor)
        given.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    onnx.save(given, tmp_path / "given.onnx")
    compiled, chance = mccompile.load(tmp_path / "given.onnx"), np.random.default_rng(1)
    for number in range(5):
        wq = chance.integers(0, 256, (3, 6)).astype(np.uint8)
        bq = chance.integers(-(2**31), 2**31 - 1, 3).astype(np.int32) >> 6 * number
        for tensor in constant.graph.initializer:
            if tensor.name in ("wq", "bq"):
                tensor.CopyFrom(numpy_helper.from_array({"wq": wq, "bq": bq}[tensor.name], tensor.name))
        known = mccompile.load(constant)
        for _ in range(50):
            a = chance.normal(0, 3, (2, 6)).astype(np.float32)
            np.testing.assert_array_equal(known(a)["y"], compiled(a, wq, bq)["y"])
