"""BatchNormalization that learns: losses, weights and running averages are those of the definition in float64."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser

import mccompile
from mccompile.base.errors import MccError, MccWarning

Array = Any
FIRST = {
    "w": np.array([[0.5, -1, 0.25], [1, 0.5, -0.5]], np.float32),
    "scale": np.array([1, 2, 0.5], np.float32),
    "bias": np.array([0.5, 0, -1], np.float32),
    "mean": np.array([0.25, -0.5, 1], np.float32),
    "variance": np.array([1, 0.5, 2], np.float32),
}
RATE = 0.1


def network(attributes: str = "", outputs: str = "y", **more: Array) -> ModelProto:
    model = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 17]> g (float[6, 2] x) => (float[6, 3] y) {{
        h = MatMul(x, w) {outputs} = BatchNormalization <epsilon = 0.01, momentum = 0.8 {attributes}> (h, scale, bias,
        mean, variance) }}""")
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in (FIRST | more).items())
    return model


def early() -> ModelProto:
    """As PyTorch exports it for training, before opset 14."""
    model = network(outputs="y, mean_now, variance_now, saved_mean, saved_variance")
    model.opset_import[0].version = 13
    return model


def trained(count: int) -> tuple[list[float], dict[str, Array]]:
    """Losses, and what is learned by SGD of the mean square error."""
    now: dict[str, Array] = {name: array.astype(np.float64) for name, array in FIRST.items()}
    losses = []
    for x, target in batches(count):
        h = x @ now["w"]
        mean, variance = h.mean(0), h.var(0)
        n = (h - mean) / np.sqrt(variance + 0.01)
        off = n * now["scale"] + now["bias"] - target
        losses.append(float((off**2).mean()))
        dy = 2 * off / off.size
        dn = dy * now["scale"]
        dh = (dn - dn.mean(0) - n * (dn * n).mean(0)) / np.sqrt(variance + 0.01)
        slopes = {"w": x.T @ dh, "scale": (dy * n).sum(0), "bias": dy.sum(0)}
        now = {name: array - RATE * slopes.get(name, 0) for name, array in now.items()}
        now["mean"] = 0.8 * now["mean"] + 0.2 * mean
        now["variance"] = 0.8 * now["variance"] + 0.2 * h.var(0, ddof=1)
    return losses, now


def batches(count: int) -> list[tuple[Array, Array]]:
    draw = np.random.default_rng(3)
    return [tuple(draw.standard_normal((6, n)).astype(np.float32) for n in (2, 3)) for _ in range(count)]  # type: ignore[misc]


def learning(model: ModelProto, **how: Any) -> mccompile.Trainer:
    how = {"learn": "all", "optimizer": f"sgd,lr={RATE}", "batch_norm": "train", **how}
    return mccompile.train(model, loss="mse:y", **how)


@pytest.mark.parametrize(("model", "at_once"), [(network(), False), (network(), True), (early(), False)])
def test_batches_are_normalized_and_averaged(model: ModelProto, at_once: bool) -> None:
    net = learning(model, at_once=at_once)
    losses, known = trained(4)
    assert [net.step(x, target) for x, target in batches(4)] == pytest.approx(losses, rel=1e-5)
    assert set(net.weights()) == set(known)
    for name, array in net.weights().items():
        np.testing.assert_allclose(array, known[name], rtol=1e-4, atol=1e-6)
    x = batches(1)[0][0]
    right = (x @ known["w"] - known["mean"]) / np.sqrt(known["variance"] + 0.01) * known["scale"] + known["bias"]
    np.testing.assert_allclose(net.run(x)["y"], right, rtol=1e-4, atol=1e-5)
    net.forget()
    assert net.weights()["variance"].tolist() == FIRST["variance"].tolist()


@pytest.mark.parametrize(
    "model",
    [network(), network(", training_mode = 1"), network(", training_mode = 1", "y, mean_now, variance_now"), early()],
)
def test_frozen_normalizes_by_the_averages_of_the_file(model: ModelProto) -> None:
    """However it was exported; and so does a layer that does not learn."""
    x, target = batches(1)[0]
    h = (x @ FIRST["w"] - FIRST["mean"]) / np.sqrt(FIRST["variance"] + 0.01) * FIRST["scale"] + FIRST["bias"]
    for how in ({"batch_norm": "frozen"}, {"learn": "w"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MccWarning)  # the second one has none that learns
            net = learning(model, **how)
        assert net.step(x, target) == pytest.approx(float(((h - target) ** 2).mean()), rel=1e-5)
        assert set(net.weights()) == {"w"}


FOLDED = """<ir_version: 8, opset_import: ["" : 17]> g (float[6, 2] x) => (float[6, 3] y) { y = MatMul(x, w) }"""


@pytest.mark.parametrize(
    ("text", "learn", "said"),
    [("", "w", "is among what learns; --learn all"), (FOLDED, "all", r"has no BatchNormalization\. .*PRESERVE")],
)
def test_statistics_of_batches_that_nothing_takes_are_told(text: str, learn: str, said: str) -> None:
    """As where an exporter has folded the layer that should take them."""
    model = network()
    if text:
        model = parser.parse_model(text)
        model.graph.initializer.append(numpy_helper.from_array(FIRST["w"], "w"))
    with pytest.warns(MccWarning, match=f"--batch-norm train changes nothing: .*{said}"):
        learning(model, learn=learn)


TWICE = """<ir_version: 8, opset_import: ["" : 17]> g (float[6, 2] x) => (float[6, 2] y)
{ a = BatchNormalization(x, scale, bias, mean, var) y = BatchNormalization(a, scale2, bias2, mean2, var2) }"""


@pytest.mark.parametrize(("learn", "is_told"), [("scale2,bias2", True), ("all", False)])
def test_layers_that_keep_their_averages_beside_others_are_told(learn: str, is_told: bool) -> None:
    model = parser.parse_model(TWICE)
    for number, end in enumerate(("", "2")):
        for place, name in enumerate(("scale", "bias", "mean", "var")):
            array = np.array([1 + place, 2 + number], np.float32)
            model.graph.initializer.append(numpy_helper.from_array(array, name + end))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", MccWarning)
        learning(model, learn=learn)
    assert any("1 of 2 BatchNormalizations keep the averages" in str(each.message) for each in told) == is_told


@pytest.mark.parametrize(
    ("how", "what"),
    [
        ({"shapes": {"x": (1, 2)}}, "no statistics of a batch"),
        ({"learn": "mean,scale"}, "mean is a weight as well"),
        ({"batch_norm": "trian"}, "did you mean batch_norm train?"),
    ],
)
def test_what_cannot_be_is_refused(how: dict[str, Any], what: str) -> None:
    model = network()
    if "shapes" in how:
        for value in (*model.graph.input, *model.graph.output):
            value.type.tensor_type.shape.dim[0].dim_value = 1
        how = {}
    with pytest.raises(MccError, match=what.replace("?", r"\?")):
        learning(model, **how)


def test_statistics_that_the_model_gives_away_are_refused() -> None:
    model = network(", training_mode = 1", "y, mean_now, variance_now")
    info = model.graph.output[0].type.tensor_type
    given = parser.parse_graph("g (float[3] a) => (float[3] mean_now) { mean_now = Identity(a) }").output[0]
    assert info.elem_type == given.type.tensor_type.elem_type
    model.graph.output.append(given)
    with pytest.raises(MccError, match="gives its statistics away"):
        learning(model)
