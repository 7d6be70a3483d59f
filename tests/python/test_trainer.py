"""`mccompile.train`: what the C learns is what the optimizers' definitions give, over steps."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

import mccompile
from mccompile.base.errors import MccError, MccWarning

Array = Any  # of float64
Weights = dict[str, Array]
SHAPES = {"w1": (6, 8), "b1": (8,), "w2": (8, 3), "b2": (3,)}


def network() -> ModelProto:
    """Two layers, which end in a Softmax."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[4, 6] x) => (float[4, 3] p) {
        h = Gemm(x, w1, b1) r = Relu(h) s = Gemm(r, w2, b2) p = Softmax <axis = 1> (s) }""")
    draw = np.random.default_rng(0)
    for name, shape in SHAPES.items():
        values = (0.5 * draw.standard_normal(shape)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(values, name))
    return model


def first_weights() -> Weights:
    return {tensor.name: numpy_helper.to_array(tensor).astype(np.float64) for tensor in network().graph.initializer}


def batches(count: int) -> list[tuple[Array, Array]]:
    draw = np.random.default_rng(1)
    return [(draw.standard_normal((4, 6)).astype(np.float32), draw.integers(0, 3, 4)) for _ in range(count)]


def slopes(w: Weights, x: Array, y: Array) -> tuple[float, Weights]:
    """Cross entropy, and its gradients, written down by hand in float64."""
    r = np.maximum(x @ w["w1"] + w["b1"], 0)
    s = r @ w["w2"] + w["b2"]
    p = np.exp(s - s.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    loss = -np.log(p[np.arange(len(y)), y]).mean()
    ds = (p - np.eye(3)[y]) / len(y)
    dh = ds @ w["w2"].T * (r > 0)
    return float(loss), {"w1": x.T @ dh, "b1": dh.sum(0), "w2": r.T @ ds, "b2": ds.sum(0)}


Step = Callable[[int, Array, Array, dict[str, Any]], Array]  # number from 1 on, weight, gradient, what is kept of it


def sgd(t: int, w: Array, g: Array, kept: dict[str, Any]) -> Array:
    return w - 0.1 * g


def nesterov(t: int, w: Array, g: Array, kept: dict[str, Any]) -> Array:
    g = g + 0.01 * w
    kept["v"] = 0.9 * kept.get("v", 0) + g
    return w - 0.05 * (g + 0.9 * kept["v"])


def adam(t: int, w: Array, g: Array, kept: dict[str, Any], rate: float = 0.01) -> Array:
    kept["m"] = 0.9 * kept.get("m", 0) + 0.1 * g
    kept["v"] = 0.999 * kept.get("v", 0) + 0.001 * g * g
    return w - rate * kept["m"] / (1 - 0.9**t) / (np.sqrt(kept["v"] / (1 - 0.999**t)) + 1e-8)


def adamw(t: int, w: Array, g: Array, kept: dict[str, Any]) -> Array:
    return adam(t, w * (1 - 0.01 * 0.1), g, kept)


def adagrad(t: int, w: Array, g: Array, kept: dict[str, Any]) -> Array:
    kept["s"] = kept.get("s", 0) + g * g
    return w - 0.05 * g / (np.sqrt(kept["s"]) + 1e-10)


OPTIMIZERS: dict[str, Step] = {
    "sgd,lr=0.1": sgd,
    "momentum,lr=0.05,nesterov=1,weight_decay=0.01": nesterov,
    "adam,lr=0.01": adam,
    "adamw,lr=0.01,weight_decay=0.1": adamw,
    "adagrad,lr=0.05": adagrad,
}


def trained(step: Step, accumulate: int = 1, clip: float = np.inf, count: int = 8) -> tuple[list[float], Weights]:
    w, kept, losses, sums = first_weights(), {name: dict[str, Any]() for name in SHAPES}, [], dict[str, Array]()
    for number, (x, y) in enumerate(batches(count), 1):
        loss, found = slopes(w, x, y)
        losses.append(loss)
        sums = {name: sums.get(name, 0) + found[name] / accumulate for name in SHAPES}
        if number % accumulate == 0:
            norm = np.sqrt(sum((g**2).sum() for g in sums.values()))
            scale = min(1, clip / (norm + 1e-6))
            w = {n: step(number // accumulate, w[n], scale * sums[n], kept[n]) for n in SHAPES}
            sums = {}
    return losses, w


def losses_of(net: mccompile.Trainer, count: int = 8) -> list[float]:
    return [net.step(x, y) for x, y in batches(count)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_steps_are_those_of_the_definition(optimizer: str) -> None:
    net = mccompile.train(network(), loss="cross_entropy:p", learn="all", optimizer=optimizer)
    losses, weights = trained(OPTIMIZERS[optimizer])
    assert losses_of(net) == pytest.approx(losses, rel=1e-5)
    for name, array in net.weights().items():
        np.testing.assert_allclose(array, weights[name], rtol=1e-4, atol=1e-5)
    assert set(net.weights()) == set(SHAPES)


@pytest.mark.parametrize(("how", "known"), [({"accumulate": 2}, {"accumulate": 2}), ({"clip": 0.3}, {"clip": 0.3})])
def test_gradients_are_added_up_and_clipped(how: dict[str, Any], known: dict[str, Any]) -> None:
    net = mccompile.train(network(), loss="cross_entropy:p", learn="all", optimizer="sgd,lr=0.1", **how)
    assert losses_of(net) == pytest.approx(trained(sgd, **known)[0], rel=1e-5)


def test_weights_of_different_ranks_share_a_step() -> None:
    """A vector and a matrix of as many elements."""
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[2, 6] x) => (float[2, 3] y) {
        h = Gemm(x, w1, b1) y = Gemm(h, w2) }""")
    for name, shape in {"w1": (6, 4), "b1": (4,), "w2": (4, 3)}.items():
        model.graph.initializer.append(numpy_helper.from_array(np.full(shape, 0.1, np.float32), name))
    extra = numpy_helper.from_array(np.zeros(12, np.float32), "b3")
    model.graph.initializer.append(extra)
    model.graph.node.extend(
        parser.parse_graph(
            "g (float[2, 3] y) => (float[2, 12] z) { s = ReduceSum <keepdims = 1> (y, one) z = Add(s, b3) }"
        ).node
    )
    model.graph.initializer.append(numpy_helper.from_array(np.array([1]), "one"))
    model.graph.output[0].CopyFrom(parser.parse_graph("g (float[2, 12] z) => (float[2, 12] z) { }").output[0])
    net = mccompile.train(model, loss="mse:z", learn="all,b3", optimizer="sgd,lr=0.01")
    x = np.ones((2, 6), np.float32)
    losses = [net.step(x, np.ones((2, 12), np.float32)) for _ in range(5)]
    assert losses == sorted(losses, reverse=True)
    assert net.weights()["b3"].any()


def test_weights_move_at_once_in_less_memory() -> None:
    how: dict[str, Any] = {"loss": "cross_entropy:p", "learn": "all", "optimizer": "adam,lr=0.01"}
    net, once = mccompile.train(network(), **how), mccompile.train(network(), **how, at_once=True)
    assert losses_of(once) == pytest.approx(trained(adam)[0], rel=1e-5)
    assert once.report["arena_bytes"] < net.report["arena_bytes"]


def test_frozen_layers_stay_and_the_run_sees_what_was_learned(tmp_path: Path) -> None:
    net = mccompile.train(network(), loss="cross_entropy:p", learn="last:1", optimizer="sgd,lr=0.1")
    x, _ = batches(1)[0]
    before = net.run(x)[0]
    losses_of(net)
    after = net.run(x)[0]
    assert set(net.weights()) == {"w2", "b2"}
    assert np.abs(after - before).max() > 1e-3
    onnx_file = net.save(tmp_path / "learned.onnx")
    held = {t.name: numpy_helper.to_array(t) for t in onnx.load(onnx_file).graph.initializer}
    assert held["w1"].tolist() == first_weights()["w1"].astype(np.float32).tolist()
    assert held["w2"].tolist() == net.weights()["w2"].tolist()
    np.testing.assert_allclose(mccompile.load(str(onnx_file))(x)[0], after, rtol=1e-5)
    net.forget()
    assert net.run(x)[0].tolist() == before.tolist()
    with pytest.raises(MccError, match="the classes of p are 0 to 2"):
        net.step(x, np.array([0, 1, 2, 3]))


def test_losses_of_other_kinds() -> None:
    draw = np.random.default_rng(2)
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 17]> g (float[4, 6] x) => (float[4, 3] p, float l)
        <float[6, 3] w = {0}> { s = MatMul(x, w) p = Sigmoid(s) l = ReduceMean <keepdims = 0> (s) }""")
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(draw.standard_normal((6, 3)).astype(np.float32), "w"))
    x, y = draw.standard_normal((4, 6)).astype(np.float32), draw.random((4, 3)).astype(np.float32)
    s = x.astype(np.float64) @ numpy_helper.to_array(model.graph.initializer[0])
    p = 1 / (1 + np.exp(-s))
    d = np.abs(p - y)
    known = {
        "mse:p": (d**2).mean(),
        "huber:p": np.where(d < 1, d**2 / 2, d - 0.5).mean(),
        "bce:p": -(y * np.log(p) + (1 - y) * np.log(1 - p)).mean(),
    }
    for loss, value in known.items():
        assert mccompile.train(model, loss=loss, learn="w").step(x, y) == pytest.approx(value, rel=1e-5)
    assert mccompile.train(model, loss="l", learn="w").step(x) == pytest.approx(s.mean(), rel=1e-5)


@pytest.mark.parametrize(("last", "is_told"), [("Sigmoid(s)", False), ("Identity(s)", True)])
def test_bce_of_logits_is_told(last: str, is_told: bool) -> None:
    """Outside of 0 to 1 the loss is NaN; users of PyTorch leave the Sigmoid to the loss."""
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]> g (float[2, 2] x) => (float[2, 2] y)
        <float[2, 2] w = {{1, 2, 3, 4}}> {{ s = MatMul(x, w) y = {last} }}""")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", MccWarning)
        mccompile.train(model, loss="bce:y", learn="w")
    assert any("bce:y takes probabilities, and y comes from MatMul" in str(each.message) for each in told) == is_told


def test_a_size_that_a_loop_of_both_phases_measures_is_one_field() -> None:
    model = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]> g (float[2, 3] x) => (float[2, 2] y)
        <float[3, 2] w = {1, 2, 3, 4, 5, 6}, int64 two = {2}, float none = {0}> {
        total = Loop (two, , none) <body = body (int64 i, bool go, float before) => (bool on, float after) {
            on = Identity(go) n = NonZero(x) f = Cast <to = 1> (n) s = ReduceSum <keepdims = 0> (f)
            after = Add(before, s) }>
        p = MatMul(x, w) y = Add(p, total) }""")
    net = mccompile.train(model, loss="mse:y", learn="all", optimizer="sgd,lr=0.1")
    assert net.step(np.ones((2, 3), np.float32), np.zeros((2, 2), np.float32)) == 814.5


LOOPED = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 6] x) => (float[4, 6] p)
    <int64 trips = {2}, bool go = {1}> { p = Loop (trips, go, x) <body = b (int64 i, bool c, float[4, 6] h) =>
        (bool c2, float[4, 6] k) { c2 = Identity(c) m = MatMul(h, w) k = Tanh(m) }> }"""
WRITTEN = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 6] x) => (float[4, 6] p) {
    m = MatMul(x, w) k = Tanh(m) n = MatMul(k, w) p = Tanh(n) }"""


def test_a_weight_in_a_loop_learns_as_one_that_several_layers_share() -> None:
    found = []
    for text in (LOOPED, WRITTEN):
        model = parser.parse_model(text)
        weight = np.random.default_rng(4).standard_normal((6, 6)).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(weight, "w"))
        net = mccompile.train(model, loss="mse:p", learn="all", optimizer="sgd,lr=0.1")
        (x, _), (target, _) = batches(2)
        losses = [net.step(x, np.tanh(target[:4])) for _ in range(3)]
        found.append((losses, net.run(x)["p"]))
    (looped, after), (written, wanted) = found
    assert looped == pytest.approx(written, rel=1e-5)
    assert written[2] < written[0]
    assert np.abs(after - wanted).max() < 1e-5


@pytest.mark.parametrize(
    ("opset", "end"),
    [
        (17, "p = Softmax <axis = 1> (s) y = Identity(p)"),
        (17, "four = Unsqueeze(s, behind) p = Softmax <axis = 1> (four) y = Flatten(p)"),
        (11, "four = Reshape(s, pixels) p = Softmax <axis = 1> (four) y = Flatten(p)"),
        (17, "turned = Transpose(s) p = Softmax <axis = 0> (turned) y = Transpose(p)"),
        (17, "double = Cast <to = 11> (s) p = Softmax <axis = 1> (double) y = Cast <to = 1> (p)"),
    ],
)
def test_cross_entropy_takes_the_logits_of_a_softmax_behind_which_elements_move(opset: int, end: str) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[4, 6] x) => (float[4, 3] y)
        <int64[2] behind = {{2, 3}}, int64[4] pixels = {{4, 1, 3, 1}}> {{ s = Gemm(x, w, b) {end} }}""")
    draw = np.random.default_rng(0)
    w, b = (draw.standard_normal(shape).astype(np.float32) for shape in ((6, 3), (3,)))
    model.graph.initializer.extend([numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")])
    x, y = batches(1)[0]
    s = x @ w + b
    want = (np.log(np.exp(s).sum(1)) - s[np.arange(4), y]).mean()
    assert mccompile.train(model, loss="cross_entropy:y").step(x, y) == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize(
    "end",
    [
        "p = Softmax <axis = 1> (s)",
        "four = Flatten <axis = 1> (s) q = Softmax <axis = 1> (four) square = Constant <value_ints = [1, 2, 2]> ()"
        " turned = Reshape(q, square) p = Transpose <perm = [0, 2, 1]> (turned)",
    ],
)
def test_cross_entropy_takes_a_softmax_over_pixels_as_scores_of_classes(end: str) -> None:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 11]> g (float[1, 2, 2] x) => (float[1, 2, 2] p)
        <float[2, 2] w = {{1, 2, -1, 3}}> {{ s = MatMul(x, w) {end} }}""")
    x, y = np.array([[[1, 0.5], [-1, 2]]], np.float32), np.array([[0, 1]])
    s = x @ np.array([[1, 2], [-1, 3]])
    p = np.exp(s) / np.exp(s).sum()
    p = p.transpose(0, 2, 1) if "perm" in end else p
    want = (np.log(np.exp(p).sum(1)) - np.take_along_axis(p, y[:, None], 1)[:, 0]).mean()
    assert mccompile.train(model, loss="cross_entropy:p").step(x, y) == pytest.approx(want, rel=1e-5)


@pytest.mark.parametrize("rate", [float("nan"), float("inf"), -0.1])
def test_a_rate_that_no_step_can_have_is_refused(rate: float) -> None:
    net = mccompile.train(network(), loss="cross_entropy:p")
    with pytest.raises(MccError, match="rate cannot be"):
        net.step(*batches(1)[0], rate=rate)


def test_what_learns_goes_on_from_a_pickle_where_it_was() -> None:
    net = mccompile.train(network(), loss="cross_entropy:p", learn="all", optimizer="adam", accumulate=2)
    seen = batches(6)
    for x, y in seen[:3]:  # between two steps
        net.step(x, y)
    other = pickle.loads(pickle.dumps(net))
    assert other.losses == net.losses
    assert [other.step(x, y) for x, y in seen] == [net.step(x, y) for x, y in seen]


def test_a_pickle_whose_file_has_changed_is_refused(tmp_path: Path) -> None:
    path, model = tmp_path / "net.onnx", network()
    onnx.save(model, path)
    pickled = pickle.dumps(mccompile.train(path, loss="cross_entropy:p"))
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(SHAPES["w1"], np.float32), "w1"))  # frozen
    onnx.save(model, path)
    with pytest.raises(MccError, match="has changed since its network was pickled"):
        pickle.loads(pickled)
