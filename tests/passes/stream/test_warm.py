"""edge=warm: results are those of one long window, away from its ends."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from tests.passes.stream.pushed import Steps, agree, floats, model, part, session, stepped

FRAMES = 60
SAME = "{ a = Conv<pads=[1, 1]>(x, w) b = Relu(a) c = Conv<pads=[2, 2], dilations=[2]>(b, w) y = Add(c, x) }"
CAUSAL = "{ p = Pad(x, left) a = Conv(p, w) b = Add(a, x) q = Conv<pads=[4, 0], dilations=[2]>(b, w) y = Add(q, b) }"
POOLED = "{ a = Conv<pads=[1, 1]>(x, w) y = AveragePool<kernel_shape=[2], strides=[2]>(a) }"


def network(text: str, length: int, made: int) -> ModelProto:
    weights = {"w": floats(4, 4, 3)} | ({"left": np.array([0, 0, 2, 0, 0, 0])} if "left" in text else {})
    return model(f"(float[1,4,{length}] x) => (float[1,4,{made}] y) {text}", **weights)


@pytest.mark.parametrize(
    ("text", "hop", "stride", "latency"),
    [(SAME, 1, 1, 3), (SAME, 5, 1, 3), (CAUSAL, 1, 1, 0), (POOLED, 2, 2, 2)],
    ids=["same", "same by 5", "causal", "pooled"],
)
def test_sequences(text: str, hop: int, stride: int, latency: int) -> None:
    graph, found = stepped(network(text, 8, 8 // stride), f"x=2,hop={hop},edge=warm")
    (output,) = found.outputs
    assert output.latency == latency
    frames = np.random.default_rng(3).standard_normal((1, 4, FRAMES)).astype(np.float32)
    (long,) = session(network(text, FRAMES, FRAMES // stride)).run(None, {"x": frames})
    steps, compared = Steps(graph), 0
    for push in range(1, FRAMES // hop + 1):
        got = steps.push({"x": part(frames, 2, (push - 1) * hop, push * hop)})["y"]
        end = (push * hop - latency) // stride
        if push >= found.warm_up:
            np.testing.assert_allclose(got, part(long, 2, end - hop // stride, end), rtol=1e-5, atol=1e-5)
            compared += 1
    assert compared > 40 // hop


def test_windows_are_read_late() -> None:
    """What looks ahead by two frames is pooled over a window that ended two frames ago."""
    weights = {"w": floats(4, 4, 3)}
    network = model(
        "(float[1,4,8] x) => (float[1,4,1] y) { a = Conv<pads=[0, 2]>(x, w) y = GlobalMaxPool(a) }", **weights
    )
    graph, found = stepped(network, "x=2,edge=warm")
    assert (found.outputs[0].latency, found.warm_up) == (2, 10)
    valid = model("(float[1,4,10] x) => (float[1,4,1] y) { a = Conv(x, w) y = GlobalMaxPool(a) }", **weights)
    frames = np.random.default_rng(3).standard_normal((1, 4, 20)).astype(np.float32)
    steps, whole = Steps(graph), session(valid)
    for end in range(1, 21):
        got = steps.push({"x": part(frames, 2, end - 1, end)})["y"]
        if end >= found.warm_up:
            (wanted,) = whole.run(None, {"x": part(frames, 2, end - 10, end)})
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)


RECURRENT = {
    "gru": ("y, h = GRU<hidden_size=3>(t, w, r)", 9),
    "lstm": ("y, h, c = LSTM<hidden_size=3>(t, w, r, , , zeros, zeros)", 12),
    "rnn": ('y, h = RNN<hidden_size=3, activations=["Tanh"]>(t, w, r)', 3),
}  # fmt: skip


@pytest.mark.parametrize("name", RECURRENT)
def test_recurrent_layers_go_on(name: str) -> None:
    """From the first push on, as in one long window: zeros stand before it."""
    text, rows = RECURRENT[name]
    weights = {"v": floats(4, 4, 3), "left": np.array([0, 0, 2, 0, 0, 0])}
    weights |= {"w": floats(1, rows, 4), "r": floats(1, rows, 3)}
    weights |= {"zeros": np.zeros((1, 1, 3), np.float32)} if "zeros" in text else {}

    def over(length: int) -> ModelProto:
        return model(
            f"(float[1,4,{length}] x) => (float[{length},1,1,3] y, float[1,1,3] h)"
            f"{{ p = Pad(x, left) a = Conv(p, v) t = Transpose<perm=[2, 0, 1]>(a) {text} }}",
            **weights,
        )

    graph, found = stepped(over(8), "x=2,hop=2,edge=warm")
    assert found.carried and not found.whole
    frames = np.random.default_rng(3).standard_normal((1, 4, 20)).astype(np.float32)
    steps = Steps(graph)
    steps.state = {before: np.zeros_like(array) for before, array in steps.state.items()}
    for end in range(2, 21, 2):
        wanted, last = session(over(end)).run(None, {"x": part(frames, 2, 0, end)})
        got = steps.push({"x": part(frames, 2, end - 2, end)})
        np.testing.assert_allclose(got["y"], wanted[-2:], rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(got["h"], last, rtol=1e-5, atol=1e-5)


def scanned(length: int, ends: str = "", direction: int = 0) -> ModelProto:
    """A layer of one's own, as a body that runs frame after frame."""
    return model(
        f"(float[1,4,{length}] x) => (float[1,3,{length}] y{', float[1,3] e' if ends else ''})"
        "{ p = Pad(x, left) a = Conv(p, v) t = Transpose<perm=[2, 0, 1]>(a)"
        f" e, s = Scan<num_scan_inputs=1, scan_output_axes=[2], scan_input_directions=[{direction}],"
        " body = b (float[1,3] h, float[1,4] f) => (float[1,3] n, float[1,3] o)"
        " { m = MatMul(f, w) q = MatMul(h, r) z = Add(m, q) n = Tanh(z) o = Neg(n) }>(zeros, t) y = Relu(s) }",
        v=floats(4, 4, 3), left=np.array([0, 0, 2, 0, 0, 0]), w=floats(4, 3), r=floats(3, 3),
        zeros=np.zeros((1, 3), np.float32),
    )  # fmt: skip


@pytest.mark.parametrize("ends", ["", "e"])
def test_scans_go_on(ends: str) -> None:
    graph, found = stepped(scanned(8, ends), "x=2,hop=2,edge=warm")
    assert found.carried == ("Scan",) and not found.whole
    frames = np.random.default_rng(3).standard_normal((1, 4, 20)).astype(np.float32)
    steps = Steps(graph)
    steps.state = {before: np.zeros_like(array) for before, array in steps.state.items()}
    for end in range(2, 21, 2):
        wanted = session(scanned(end, ends)).run(None, {"x": part(frames, 2, 0, end)})
        got = steps.push({"x": part(frames, 2, end - 2, end)})
        np.testing.assert_allclose(got["y"], wanted[0][..., -2:], rtol=1e-5, atol=1e-5)
        if ends:
            np.testing.assert_allclose(got["e"], wanted[1], rtol=1e-5, atol=1e-5)


def test_scans_that_read_the_window() -> None:
    """Backwards, or from the window's start."""
    assert stepped(scanned(8, direction=1), "x=2,edge=warm")[1].whole == ("Scan",)
    made = scanned(8)
    for node in made.graph.node:
        if node.op_type == "Pad":
            node.op_type, node.input[1] = "Relu", ""
            del node.input[1:]
    for value in made.graph.output:
        value.type.tensor_type.shape.dim[2].dim_value = 6
    assert stepped(made, "x=2")[1].whole == ("Scan",)
    assert agree(made, "x=2") == 7


def test_what_a_transposed_convolution_lacks_at_the_end_is_not_that_of_the_window() -> None:
    """Every second of 9 frames but the last makes 4 elements of 5 that there are: the next one would add to the end."""
    network = model(
        "(float[1,4,9] x) => (float[1,4,6] y) { s = Slice(x, zero, minus, axis, two) y = ConvTranspose(s, w) }",
        w=floats(4, 4, 3), zero=np.array([0]), minus=np.array([-1]), axis=np.array([2]), two=np.array([2]),
    )  # fmt: skip
    (output,) = stepped(network, "x=2,hop=2,edge=warm")[1].outputs
    assert (output.first, output.count, output.latency) == (3, 1, 4)
