"""One operator after a convolution over time: every push gives what the window network gives."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto

from tests.passes.stream.pushed import agree, floats, model, stepped

ARRAYS = {
    "w": floats(4, 4, 3), "deep": floats(4, 1, 4), "square": floats(4, 4), "row": floats(4), "turn": floats(4, 3, 2),
    "point": floats(4, 3, 1), "turn2": floats(4, 4, 2),
    "one": np.array([1]), "two": np.array([2]), "big": np.array([99]), "minus": np.array([-1]), "axis": np.array([2]),
    "four": np.array([4]), "blocks": np.array([1, 4, 11, 2]), "parts": np.array([1, 3]), "along": np.array([2, 20]),
    "left": np.array([0, 0, 2, 0, 0, 0]), "beside": np.array([0, 1, 0, 0, 0, 0]), "places": np.array([20, 3, -1]),
    "zeros": np.zeros((1, 4, 2), np.float32), "pos": floats(1, 4, 22), "tall": floats(2, 4), "wide": floats(22, 3),
    "flat": floats(88, 3), "scales": np.array([1, 1, 2], np.float32), "channel": floats(1, 4, 1),
    "half": np.array([0.5, 0.25, 0.5, 0.25], np.float32),
    "double": np.array([1, 1, 2], np.float32), "sizes": np.array([1, 4, 20]),
    "steps": np.abs(floats(22)) + 1, "zeros8": np.zeros(22, np.int8), "one_row": np.array([1, 88]),
    "table": floats(2, 4, 3), "none": np.array(0), "most": np.array(3), "deepest": np.array([3]),
    "hop": np.array(2), "hann": np.hanning(6).astype(np.float32), "frame": np.array(6), "first": np.array([0]),
}  # fmt: skip
FRAME_BY_FRAME = {  # the operators' text, and the shape of y
    "conv with gaps": "y = Conv<dilations=[5]>(h, w) -> 1,4,12",
    "depthwise": "y = Conv<group=4>(h, deep) -> 1,4,19",
    "average": "y = AveragePool<kernel_shape=[4]>(h) -> 1,4,19",
    "of one window": "y = MaxPool<kernel_shape=[22], strides=[22]>(h) -> 1,4,1",
    "transposed conv": "y = ConvTranspose<kernel_shape=[2]>(h, turn) -> 1,3,23",
    "slice": (
        "a = Slice(h, two, big, axis) b = Slice(h, one, minus, axis) c = Conv(b, w) d = Slice(a, one, minus, axis) y "
        "= Sub(c, d) -> 1,4,18"
    ),
    "delta": "a = Slice(h, one, big, axis) n = Slice(h, zero, minus, axis) y = Sub(a, n) -> 1,4,21",
    "split over time": "a, b = Split<axis=2>(h, along) y = Conv(b, w) -> 1,4,18",
    "split of channels": "a, b = Split<axis=1>(h, parts) y = Mul(a, b) -> 1,3,22",
    "chomp": "a = Conv<pads=[2, 2]>(h, w) b = Slice(a, two, minus, axis) y = Slice(b, zero, minus, axis) -> 1,4,20",
    "pad beside": "y = Pad(h, beside) -> 1,5,22",
    "transpose": "a = Transpose<perm=[2, 0, 1]>(h) y = Relu(a) -> 22,1,4",
    "unsqueeze": "a = Unsqueeze(h, axis) y = Squeeze(a, axis) -> 1,4,22",
    "matrix from the left": "y = MatMul(tall, h) -> 1,2,22",
    "rows": "a = Transpose<perm=[0, 2, 1]>(h) y = MatMul(a, square) -> 1,22,4",
    "gemm": "a = Squeeze(h, zero) y = Gemm<transA=1, transB=1>(a, square, row) -> 22,4",
    "softmax of channels": "y = Softmax<axis=1>(h) -> 1,4,22",
    "layer norm": "a = Transpose<perm=[0, 2, 1]>(h) y = LayerNormalization(a, row) -> 1,22,4",
    "mean of channels": "y = ReduceMean<axes=[1], keepdims=0>(h) -> 1,22",
    "channels scaled": "y = Mul(h, channel) -> 1,4,22",
    "concat of channels": "a = Slice(h, two, big, axis) b = Conv(h, w) y = Concat<axis=1>(b, a) -> 1,8,20",
    "gather of channels": "y = Gather<axis=1>(h, one) -> 1,1,22",
    "rows of a table": (
        "a = Relu(h) b = Cast<to=7>(a) c = Clip(b, none, most) y = Gather<axis=1>(table, c) -> 2,1,4,22,3"
    ),
    "batch norm": "y = BatchNormalization(h, row, row, row, half) -> 1,4,22",
    "shape of it": "s = Shape(h) f = Cast<to=1>(s) m = ReduceMax<keepdims=0>(f) y = Add(h, m) -> 1,4,22",
    "transform of channels": (
        "a = Transpose<perm=[0, 2, 1]>(h) u = Unsqueeze(a, deepest) d = DFT<axis=2>(u) y = Abs(d) -> 1,22,4,2"
    ),
    "more elements than frames": "y = ConvTranspose<strides=[3]>(h, turn) -> 1,3,65",
    "gaps between elements": "y = ConvTranspose<strides=[2]>(h, point) -> 1,3,43",
    "more and more": (
        'a = ConvTranspose<strides=[2], pads=[1, 1]>(h, w) b = Resize<mode="nearest">(a, , double) c = Conv(b, w) '
        "y = Relu(c) -> 1,4,84"
    ),
    "more, then as many": "a = ConvTranspose<strides=[2]>(h, turn2) y = Conv<strides=[2]>(a, w) -> 1,4,21",
    "cast": "a = Cast<to=10>(h) b = Cast<to=1>(a) y = Conv(b, w) -> 1,4,20",
}
OF_THE_WINDOW = {
    "interpolated": 'a = Conv(h, w) y = Resize<mode="linear">(a, , double) -> 1,4,40',
    "flatten": "a = Flatten(h) y = Gemm(a, flat) -> 1,3",
    "mean over time": "y = ReduceMean<axes=[2], keepdims=0>(h) -> 1,4",
    "global pool": "y = GlobalMaxPool(h) -> 1,4,1",
    "softmax over time": "y = Softmax<axis=2>(h) -> 1,4,22",
    "positions": "y = Add(h, pos) -> 1,4,22",
    "squeeze-excite": "a = GlobalAveragePool(h) b = Sigmoid(a) y = Mul(h, b) -> 1,4,22",
    "weights of time": "y = MatMul(h, wide) -> 1,4,3",
    "some places": "y = Gather<axis=2>(h, places) -> 1,4,3",
    "scales of time": (
        "q = QuantizeLinear<axis=2>(h, steps, zeros8) y = DequantizeLinear<axis=2>(q, steps, zeros8) -> 1,4,22"
    ),
    "layer norm over time": "y = LayerNormalization(h, steps) -> 1,4,22",
    "time in one element": "a = Transpose<perm=[2, 0, 1]>(h) y = Reshape(a, one_row) -> 1,88",
    "running sum": "y = CumSum(h, scalar) -> 1,4,22",
    "products of itself": "a = Transpose<perm=[0, 2, 1]>(h) y = MatMul(a, h) -> 1,22,22",
}
BY_TWO = {
    "three of two frames": "a = Conv<strides=[2]>(h, w) y = ConvTranspose<strides=[3]>(a, turn) -> 1,3,29",
    "stride": "y = Conv<strides=[2]>(h, w) -> 1,4,10",
    "every second": "y = Slice(h, one, big, axis, two) -> 1,4,11",
    "frames of a signal": (
        "c = Gather<axis=1>(h, first) s = Squeeze(c, first) f = STFT(s, hop, hann) y = Abs(f) -> 1,9,4,2"
    ),
    "frames without a window": (
        "c = Gather<axis=1>(h, first) s = Squeeze(c, first) f = STFT(s, hop, , frame) y = Abs(f) -> 1,9,4,2"
    ),
    "blocks": "y = Reshape(h, blocks) -> 1,4,11,2",
    "down and up": "a = MaxPool<kernel_shape=[2], strides=[2]>(h) y = ConvTranspose<strides=[2]>(a, turn) -> 1,3,22",
    "repeated": 'a = Conv<strides=[2]>(h, w) b = Resize<mode="nearest">(a, , double) y = Conv(b, w) -> 1,4,18',
    "repeated to a size": (
        'a = Conv<strides=[2]>(h, w) y = Resize<mode="nearest",nearest_mode="floor",'
        'coordinate_transformation_mode="asymmetric">(a, , , sizes) -> 1,4,20'
    ),
    "half hidden": "a = Conv<strides=[2]>(h, w) b = AveragePool<kernel_shape=[3]>(a) y = Relu(b) -> 1,4,8",
}


def network(rule: str) -> ModelProto:
    text, _, shape = rule.rpartition(" -> ")
    used = {name: array for name, array in ARRAYS.items() if name in text.replace(",", " ").replace(")", " ").split()}
    used |= {name: array for name, array in ARRAYS.items() if f"({name}," in text or f" {name}," in text}
    used |= {"zero": np.array([0])} if "zero" in text else {}
    used |= {"scalar": np.array(2)} if "scalar" in text else {}
    return model(f"(float[1,4,24] x) => (float[{shape}] y) {{ h = Conv(x, w) {text} }}", **(used | {"w": ARRAYS["w"]}))


@pytest.mark.parametrize("name", FRAME_BY_FRAME)
def test_frame_by_frame(name: str) -> None:
    made = network(FRAME_BY_FRAME[name])
    assert not stepped(made, "x=2")[1].whole
    assert agree(made, "x=2") == agree(made, "x=2,hop=5") == 7


def test_matrices_of_a_batch() -> None:
    """Of one frame they are one tall matrix, of a window they are not."""
    nodes = "a = Relu(x) b = Transpose<perm=[0, 2, 1]>(a) y = MatMul(b, square)"
    text = f"(float[2,4,24] x) => (float[2,24,4] y) {{ {nodes} }}"
    made = model(text, square=ARRAYS["square"])
    assert agree(made, "x=2") == agree(made, "x=2,hop=3") == 7


@pytest.mark.parametrize("name", OF_THE_WINDOW)
def test_of_the_window(name: str) -> None:
    made = network(OF_THE_WINDOW[name])
    assert stepped(made, "x=2")[1].whole
    assert agree(made, "x=2") == agree(made, "x=2,hop=3") == 7


@pytest.mark.parametrize("name", BY_TWO)
def test_by_two(name: str) -> None:
    made = network(BY_TWO[name])
    assert not stepped(made, "x=2,hop=2")[1].whole
    assert agree(made, "x=2,hop=2") == agree(made, "x=2,hop=6") == 7
