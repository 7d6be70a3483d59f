"""Quantized networks with operators over integers, as onnxruntime's quantizer and TensorFlow Lite's converters write
them."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from .net import Net, f, ints
from .quantized import Quantized, quantized_data
from .spelling import Writer, add_spelling, spelled


@spelled("quantized/qoperator")
def conv_by_qdq(net: Net) -> str:
    return _qoperator(net, False)


@spelled("quantized/qoperator", off=1, close=0.02)
def conv_by_qlinear(net: Net) -> str:
    return _qoperator(net, True)


def _qoperator(net: Net, whole: bool) -> str:
    own, x = quantized_data(net, np.uint8)
    w = own.integers(-127, 128, 8, 4, 3, 3, dtype=np.int8)
    scales = (own.floats(8, low=0.5) * 0.01).astype(np.float32)
    bias, zeros = own.integers(-500, 500, 8, dtype=np.int32), np.zeros(8, np.int8)
    made = own.q(x)
    if whole:
        parts = (own.scale, own.zero, w, scales, zeros, own.scale, own.zero, bias)
        return own.dq(own.op("QLinearConv", made, *parts, pads=[1] * 4))
    weights = own.op("DequantizeLinear", w, scales, zeros, axis=0)
    number = own.op("DequantizeLinear", bias, scales * own.scale, axis=0)
    return own.qdq(own.op("Conv", own.dq(made), weights, number, pads=[1] * 4))


def _add_both(op: str, write: Writer, close: float, **more: Any) -> None:
    """An operator between DequantizeLinear and QuantizeLinear, and as a whole."""
    for whole in (False, True):
        name = f"{op.lower()}_by_{'qlinear' if whole else 'qdq'}"
        add_spelling(f"quantized/{op.lower()}", name, write, {"op": op, "whole": whole, **more}, off=1, close=close)


_PAIRS = ("Add", "Mul")


def _pair(net: Net, op: str, whole: bool) -> str:
    own, x = quantized_data(net)
    y = own.input(own.floats(1, 4, 8, 8, low=-4, high=4))
    a, b = own.q(x), own.q(y)
    if whole:
        same = own.scale, own.zero
        return own.dq(own.ms(f"QLinear{op}", a, *same, b, *same, *same))
    return own.qdq(own.op(op, own.dq(a), own.dq(b)))


for _op in _PAIRS:
    _add_both(_op, _pair, 0.02)


def _one(net: Net, op: str, whole: bool, **more: Any) -> str:
    own, x = quantized_data(net, np.uint8)
    made = own.q(x)
    names = {"AveragePool": "QLinearAveragePool", "GlobalAveragePool": "QLinearGlobalAveragePool"}
    if whole:
        same = own.scale, own.zero
        if op == "Softmax":
            more["opset"] = 13
        return own.dq(own.ms(names.get(op, f"QLinear{op}"), made, *same, *same, **more))
    return own.qdq(own.op(op, own.dq(made), **more))


_ONES: dict[str, dict[str, Any]] = {
    "Sigmoid": {},
    "LeakyRelu": {"alpha": 0.1},
    "AveragePool": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "GlobalAveragePool": {},
    "Softmax": {"axis": 3},
}


for _op, _more in _ONES.items():
    _add_both(_op, _one, 0.05, **_more)


def _product(net: Net) -> tuple[Quantized, str, np.ndarray]:
    """An input and weights."""
    own = Quantized(net)
    return own, own.input(own.floats(5, 12)), own.integers(-127, 128, 12, 7, dtype=np.int8)


_PER_TENSOR = f(0.01), np.array(0, np.int8)  # scale and zero point of these weights


@spelled("quantized/product")
def product_by_qdq(net: Net) -> str:
    own, x, w = _product(net)
    weights = own.op("DequantizeLinear", w, *_PER_TENSOR)
    return own.qdq(own.op("MatMul", own.qdq(x), weights))


@spelled("quantized/product", off=1, close=0.05)
def product_by_qlinear(net: Net) -> str:
    own, x, w = _product(net)
    same = own.scale, own.zero
    return own.dq(own.op("QLinearMatMul", own.q(x), *same, w, *_PER_TENSOR, *same))


@spelled("quantized/product", off=1, close=0.05)
def product_by_gemm(net: Net) -> str:
    own, x, w = _product(net)
    turned = own.op("DequantizeLinear", np.ascontiguousarray(w.T), *_PER_TENSOR)
    return own.qdq(own.op("Gemm", own.qdq(x), turned, transB=1))


@spelled("quantized/product", off=1, close=0.05)
def product_by_transpose(net: Net) -> str:
    """As torch's PT2E flow leaves Linear: weights are transposed behind their DequantizeLinear."""
    own, x, w = _product(net)
    made = own.op("DequantizeLinear", np.ascontiguousarray(w.T), *_PER_TENSOR)
    return own.qdq(own.op("MatMul", own.qdq(x), own.op("Transpose", made, perm=[1, 0])))


@spelled("quantized/product", off=1, close=0.05)
def product_by_reshape(net: Net) -> str:
    """As tf2onnx writes a fully connected layer of TensorFlow Lite: flattened first."""
    own, x, w = _product(net)
    flat = own.op("Reshape", own.qdq(x), ints(-1, 12))
    return own.qdq(own.op("MatMul", flat, own.op("DequantizeLinear", w, *_PER_TENSOR)))


def _lite(net: Net, turned: bool) -> str:
    """tf2onnx on TensorFlow Lite: pictures channels-last, quantized at the ends, transposes around convolutions."""
    own = Quantized(net)
    shape = (1, 8, 8, 4) if turned else (1, 4, 8, 8)
    data = own.floats(1, 4, 8, 8, low=-4, high=4)
    x = own.input(data.transpose(0, 2, 3, 1) if turned else data)
    assert x and len(shape) == 4
    made = own.qdq(x)
    for channels in ((8, 4), (8, 8)):
        first = own.op("Transpose", made, perm=[0, 3, 1, 2]) if turned else made
        made = own.op("Relu", own.conv(first, *channels))
        made = own.qdq(own.op("Transpose", made, perm=[0, 2, 3, 1]) if turned else made)
    if turned:
        return own.qdq(own.op("ReduceMean", made, axes=[1, 2], keepdims=0))
    return own.qdq(own.op("ReduceMean", made, axes=[2, 3], keepdims=0))


@spelled("quantized/lite", off=1, close=0.02)
def channels_first(net: Net) -> str:
    return _lite(net, False)


@spelled("quantized/lite", off=1, close=0.02)
def channels_last(net: Net) -> str:
    return _lite(net, True)


@spelled("quantized/torch")
def of_eager_torch(net: Net) -> str:
    """Sums with a scale of their own, activations behind their quantizer."""
    own, x = quantized_data(net)
    first = own.qdq(own.conv(own.qdq(x), 8, 4))
    second = own.qdq(own.conv(first, 8, 8))
    return own.qdq(own.op("Relu", own.op("Add", first, second)))


@spelled("quantized/torch", close=0.05)
def of_torch_with_relu_behind(net: Net) -> str:
    own, x = quantized_data(net)
    first = own.qdq(own.conv(own.qdq(x), 8, 4))
    second = own.qdq(own.conv(first, 8, 8))
    return own.op("Relu", own.qdq(own.op("Add", first, second)))


@spelled("quantized/torch", close=0.05)
def of_torch_with_two_quantizers(net: Net) -> str:
    """PT2E annotates what each reader takes: a shared tensor is quantized once for each of them."""
    own, x = quantized_data(net)
    made = own.conv(own.qdq(x), 8, 4)
    second = own.qdq(own.conv(own.qdq(made), 8, 8))
    return own.qdq(own.op("Relu", own.op("Add", own.qdq(made), second)))


@spelled("quantized/activations", {"op": "Relu"}, {"op": "Sigmoid"}, {"op": "Tanh"}, {"op": "HardSigmoid"}, {"op": "HardSwish"}, {"op": "Elu"}, {"op": "Softplus"}, {"op": "Gelu"}, steps=None, room=1.2, opset=20, off=1, close=0.05)  # fmt: skip  # noqa: E501
def activation(net: Net, op: str) -> str:
    own, x = quantized_data(net)
    return own.qdq(own.op(op, own.qdq(own.conv(own.qdq(x), 8, 4))))


@spelled("quantized/silu", opset=24)
def silu_by_one(net: Net) -> str:
    own, x = quantized_data(net)
    return own.qdq(own.op("Swish", own.qdq(own.conv(own.qdq(x), 8, 4))))


@spelled("quantized/silu", off=2, close=0.05)
def silu_by_two(net: Net) -> str:
    own, x = quantized_data(net)
    made = own.qdq(own.conv(own.qdq(x), 8, 4))
    return own.qdq(own.op("Mul", made, own.op("Sigmoid", made)))


def _blocks(net: Net) -> tuple[str, np.ndarray]:
    """Weights of four bits in blocks of eight along the first axis, and their scales."""
    numbers = net.chance.integers(-8, 8, 16 * 6).astype(np.uint8) & 15
    packed = (numbers[::2] | numbers[1::2] << 4).astype(np.uint8)
    made = TensorProto(name="packed", data_type=TensorProto.INT4, dims=[16, 6], raw_data=packed.tobytes())
    return net.op("Constant", value=made), net.floats(2, 6, low=0.1)


@spelled("quantized/int4", opset=21)
def int4(net: Net) -> str:
    weights, scales = _blocks(net)
    floats = net.op("DequantizeLinear", weights, scales, axis=0, block_size=8)
    return net.op("MatMul", net.input(net.floats(3, 16)), floats)


@spelled("quantized/int4", opset=21, domains=("trt",), unknown=True)
def int4_of_tensorrt(net: Net) -> str:
    weights, scales = _blocks(net)
    floats = net.op("TRT_INT4DequantizeLinear", weights, scales, domain="trt", axis=0, block_size=8)
    return net.op("MatMul", net.input(net.floats(3, 16)), floats)
