"""RNN, GRU and LSTM with all that they can be given, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper

from mccompile import backend
from mccompile.base.errors import MccError
from tests.ops.bundle import One, outcomes

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
TIME, BATCH, SIZE, HIDDEN = 5, 3, 4, 6
CHANCE = np.random.default_rng(5)


def _floats(*shape: int) -> np.ndarray:
    return CHANCE.uniform(-1, 1, shape).astype(np.float32)


def _one(label: str, op: str, present: str = "", direction: str = "forward", **attributes: Any) -> One:
    """`present` names optional operands."""
    d, rows = 1 + (direction == "bidirectional"), GATES[op] * HIDDEN
    x, state = (TIME, BATCH, SIZE), (d, BATCH, HIDDEN)
    if attributes.get("layout"):
        x, state = (BATCH, TIME, SIZE), (BATCH, d, HIDDEN)
    optional = {
        "bias": _floats(d, 2 * rows),
        "lengths": np.array([5, 2, 3], np.int32),
        "h0": _floats(*state),
        "c0": _floats(*state),
        "peepholes": _floats(d, 3 * HIDDEN),
    }
    names = list(optional) if op == "LSTM" else list(optional)[:3]
    ins: list[np.ndarray | None] = [_floats(*x), _floats(d, rows, SIZE), _floats(d, rows, HIDDEN)]
    ins += [optional[name] if name in present.split() else None for name in names]
    while ins[-1] is None:
        ins.pop()
    attributes |= {"hidden_size": HIDDEN, "direction": direction}
    return One(label, op, ins, attributes, frozenset({1, 2, 3, 7}), 2 + (op == "LSTM"))


ONES = [
    _one("rnn", "RNN"),
    _one("rnn_reverse", "RNN", "bias h0", "reverse", activations=["Relu"]),
    _one("rnn_lengths", "RNN", "bias lengths", "bidirectional"),
    _one("rnn_reverse_lengths", "RNN", "lengths h0", "reverse", activations=["Sigmoid"]),
    _one("gru", "GRU", "bias h0"),
    _one("gru_after", "GRU", "bias h0", linear_before_reset=1),
    _one("gru_after_plain", "GRU", "", linear_before_reset=1),
    _one("gru_both", "GRU", "bias h0 lengths", "bidirectional", clip=0.7),
    _one("gru_mixed", "GRU", "bias", "bidirectional", activations=["HardSigmoid", "Softsign", "Sigmoid", "Tanh"]),
    _one("lstm", "LSTM", "bias"),
    _one("lstm_all", "LSTM", "bias lengths h0 c0 peepholes", "bidirectional"),
    _one("lstm_reverse", "LSTM", "h0 c0", "reverse", clip=0.5),
    _one("rnn_clip_0", "RNN", clip=0.0),
    _one("lstm_coupled", "LSTM", "bias h0 peepholes", input_forget=1),
    _one(
        "lstm_alpha", "LSTM", "bias",
        activations=["HardSigmoid", "LeakyRelu", "ScaledTanh"],
        activation_alpha=[0.3, 0.1, 0.9], activation_beta=[0.4, 0.8],
    ),
    _one("lstm_elu", "LSTM", "bias", activations=["Affine", "ThresholdedRelu", "Elu"], activation_alpha=[0.3, 0.1, 0.7],
         activation_beta=[0.2]),
]  # fmt: skip


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return outcomes(14, ONES)


@pytest.mark.parametrize("label", [one.label for one in ONES])
def test_layers_give_what_onnxruntime_gives(found: dict[str, Any], label: str) -> None:
    for outcome in found[label]:
        np.testing.assert_allclose(outcome.got, outcome.want, rtol=1e-4, atol=1e-5)


def test_an_older_opset_means_the_same() -> None:
    one = _one("lstm", "LSTM", "bias lengths h0", "bidirectional")
    for outcome in outcomes(7, [one])["lstm"]:
        np.testing.assert_allclose(outcome.got, outcome.want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_batches_first_is_the_same_with_axes_in_another_order(op: str) -> None:
    second = _one("b", op, "bias h0", "bidirectional", layout=1)
    x, w, r, bias, _, h0 = second.ins[:6]
    assert x is not None and h0 is not None
    ins = [x.swapaxes(0, 1), w, r, bias, None, h0.swapaxes(0, 1)]
    first = One("a", op, ins, {**second.attributes, "layout": 0}, second.constant, second.outs)
    # onnxruntime refuses layout 1, so its results for layout 0 are the reference of both
    want = [outcome.want for outcome in outcomes(14, [first])["a"]]
    from onnx import helper

    outs = [f"y{i}" for i in range(second.outs)]
    node = helper.make_node(op, ["x", "w", "r", "b", "", "h0"], outs, **second.attributes)
    got = backend.run_node(node, [x, w, r, bias, h0], opset_version=14)
    np.testing.assert_allclose(got[0], want[0].transpose(2, 0, 1, 3), rtol=1e-4, atol=1e-5)
    for have, expected in zip(got[1:], want[1:], strict=True):
        np.testing.assert_allclose(have, expected.swapaxes(0, 1), rtol=1e-4, atol=1e-5)


def test_an_unknown_activation_is_refused() -> None:
    from onnx import helper

    node = helper.make_node("RNN", ["x", "w", "r"], ["y"], hidden_size=2, activations=["Mystery"])
    with pytest.raises(MccError, match="Mystery"):
        backend.run_node(node, [_floats(2, 1, 3), _floats(1, 2, 3), _floats(1, 2, 2)])


@pytest.mark.parametrize("target", ["generic", "native"])
@pytest.mark.parametrize("op", sorted(GATES))
def test_a_single_step_builds_without_a_warning(op: str, target: str) -> None:
    """Its position is in no place that is read."""
    x, w, r = _floats(1, 1, 2), _floats(1, GATES[op] * 4, 2), _floats(1, GATES[op] * 4, 4)
    node = helper.make_node(op, ["x", "w", "r"], ["y", "h"], hidden_size=4)
    flags = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", *(["-march=native"] if target == "native" else [])]
    y, h = backend.run_node(node, [x, w, r], target=target, flags=flags)
    np.testing.assert_array_equal(y[:, 0], h)
