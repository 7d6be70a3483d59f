"""Quantized networks as quantizers write them: where scales stand, and what stands between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .net import Net, f, ints
from .spelling import add_spelling, spelled

Form = Callable[["Quantized", str], str]


class Quantized(Net):
    """Activations of one scale: int8 or uint8 with one zero point."""

    def __init__(self, net: Net, dtype: type = np.int8) -> None:
        self.__dict__ = net.__dict__
        self.scale, self.zero = f(0.05), np.array(3 if dtype is np.int8 else 131, dtype)

    def q(self, x: str) -> str:
        return self.op("QuantizeLinear", x, self.scale, self.zero)

    def dq(self, x: str) -> str:
        return self.op("DequantizeLinear", x, self.scale, self.zero)

    def qdq(self, x: str) -> str:
        return self.dq(self.q(x))

    def conv(self, x: str, out: int, channels: int, **more: Any) -> str:
        """A convolution with int8 weights, a scale for each output channel."""
        weights = self.integers(-127, 128, out, channels, 3, 3, dtype=np.int8)
        scales = (self.floats(out, low=0.5) * 0.01).astype(np.float32)
        made = self.op("DequantizeLinear", weights, scales, np.zeros(out, np.int8), axis=0)
        bias = self.op("DequantizeLinear", self.integers(-500, 500, out, dtype=np.int32), scales * self.scale, axis=0)
        return self.op("Conv", x, made, bias, pads=[1] * 4, **more)


def around(net: Net, form: Callable[[Quantized, str], str], qdq: bool, channels: int = 8) -> str:
    """A move between two convolutions; with `qdq` its result is quantized once more, as most quantizers do."""
    own = Quantized(net)
    x = own.dq(own.q(own.input(own.floats(1, 4, 8, 8, low=-4, high=4))))
    first = own.qdq(own.conv(x, 8, 4))
    moved = form(own, first)
    if qdq:
        moved = own.qdq(moved)
    return own.dq(own.q(own.conv(moved, 4, channels)))


def _transpose(net: Quantized, x: str) -> str:
    return net.op("Transpose", x, perm=[0, 1, 3, 2])


def _reshape(net: Quantized, x: str) -> str:
    return net.op("Reshape", x, ints(1, 8, 4, 16))


def _concat(net: Quantized, x: str) -> str:
    return net.op("Concat", x, x, axis=2)


def _slice(net: Quantized, x: str) -> str:
    return net.op("Slice", x, ints(1), ints(7), ints(2))


def _resize(net: Quantized, x: str) -> str:
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return net.op("Resize", x, "", np.array([1, 1, 2, 2], np.float32), **nearest)


def _max_pool(net: Quantized, x: str) -> str:
    return net.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])


def _pad(net: Quantized, x: str) -> str:
    return net.op("Pad", x, ints(0, 0, 1, 1, 0, 0, 1, 1), f(0))


def _flatten_and_back(net: Quantized, x: str) -> str:
    return net.op("Reshape", net.op("Flatten", x), ints(1, 8, 8, 8))


def _squeeze_and_back(net: Quantized, x: str) -> str:
    return net.op("Unsqueeze", net.op("Squeeze", x, ints(0)), ints(0))


def _split(net: Quantized, x: str) -> str:
    parts = net.op("Split", x, ints(4, 4), outs=2, axis=1)
    return net.op("Concat", f"{parts}.1", parts, axis=1)


def _depth_to_space(net: Quantized, x: str) -> str:
    big = net.op("DepthToSpace", x, blocksize=2)
    return net.op("SpaceToDepth", big, blocksize=2)


def _gather(net: Quantized, x: str) -> str:
    return net.op("Gather", x, ints(1, 3, 5, 7), axis=2)


def _expand(net: Quantized, x: str) -> str:
    return net.op("Tile", x, ints(1, 1, 2, 1))


def _relu(net: Quantized, x: str) -> str:
    return net.op("Relu", x)


def _clip(net: Quantized, x: str) -> str:
    return net.op("Clip", x, f(0), f(6))


_MOVES: tuple[Form, ...] = (
    _transpose, _reshape, _concat, _slice, _resize, _max_pool, _pad, _flatten_and_back, _squeeze_and_back, _split,
    _depth_to_space, _gather, _expand,
)  # fmt: skip


def _inside(net: Net, form: Form, qdq: bool) -> str:
    """With `qdq` before the activation is quantized: Conv, move, Q, DQ."""
    own = Quantized(net)
    x = own.dq(own.q(own.input(own.floats(1, 4, 8, 8, low=-4, high=4))))
    made = own.conv(x, 8, 4)
    made = own.qdq(form(own, own.qdq(made))) if not qdq else own.qdq(form(own, made))
    return own.dq(own.q(own.conv(made, 4, 8)))


for _form in _MOVES:
    _name = _form.__name__[1:]
    for _qdq, _where in ((False, "alone"), (True, "quantized_again")):
        add_spelling(f"quantized/move_{_name}", f"{_name}_{_where}", around, {"form": _form, "qdq": _qdq}, off=1)
    _steps = 1 if _form is _split else 0  # both of its parts are quantized
    for _qdq, _where in ((False, "on_both_sides"), (True, "before_quantizing")):
        _given = {"form": _form, "qdq": _qdq}
        add_spelling(f"quantized/inside_{_name}", f"{_name}_{_where}", _inside, _given, off=1, close=0.02, steps=_steps)


# -- forms of one convolution


def quantized_data(net: Net, dtype: type = np.int8) -> tuple[Quantized, str]:
    own = Quantized(net, dtype)
    return own, own.input(own.floats(1, 4, 8, 8, low=-4, high=4))


@spelled("quantized/conv")
def conv_of_torch(net: Net) -> str:
    own, x = quantized_data(net)
    return own.qdq(own.conv(own.qdq(x), 8, 4))


def one_conv(
    net: Net, zeros: bool = True, bias: str = "int32", per: str = "channel", relu: str = "", weights: str = "int8",
) -> str:  # fmt: skip
    own, x = quantized_data(net)
    w = own.integers(-127, 128, 8, 4, 3, 3, dtype=np.int8)
    scales = (own.floats(8, low=0.5) * 0.01).astype(np.float32)
    if per == "tensor":
        scales = scales[:1].reshape(()) if weights != "one" else scales[:1]
    bias_scale = np.broadcast_to(scales * own.scale, (8,)).astype(np.float32)
    axis = {"axis": 0} if per == "channel" else {}
    if weights == "float":
        floats = (w * scales.reshape(-1, 1, 1, 1)).astype(np.float32)
        made = own.op("QuantizeLinear", floats, scales, np.zeros(scales.shape, np.int8), **axis)
        made = own.op("DequantizeLinear", made, scales, np.zeros(scales.shape, np.int8), **axis)
    elif zeros:
        made = own.op("DequantizeLinear", w, scales, np.zeros(scales.shape, np.int8), **axis)
    else:
        made = own.op("DequantizeLinear", w, scales, **axis)
    number = own.integers(-500, 500, 8, dtype=np.int32)
    ins = [made]
    if bias == "int32":
        zero = [np.zeros(8, np.int32)] if zeros else []
        ins.append(own.op("DequantizeLinear", number, bias_scale, *zero, axis=0))
    elif bias == "float":
        ins.append(own.constant((number * bias_scale).astype(np.float32)))
    result = own.op("Conv", own.qdq(x), *ins, pads=[1] * 4)
    if bias == "added":
        result = own.op("Add", result, (number * bias_scale).astype(np.float32).reshape(1, 8, 1, 1))
    if relu == "Relu":
        result = own.op("Relu", result)
    elif relu == "Clip":
        result = own.op("Clip", result, f(0), f(6))
    return own.qdq(result)


@spelled(
    "quantized/conv", {}, {"zeros": False}, {"bias": "float"}, {"bias": "added"}, {"bias": "none"},
    {"per": "tensor"}, {"per": "tensor", "weights": "one"}, {"per": "tensor", "bias": "float"}, {"relu": "Relu"},
    {"relu": "Clip"}, {"weights": "float"}, {"weights": "float", "bias": "float"}, off=1, close=0.02,
)  # fmt: skip
def conv_of_other_quantizers(net: Net, **how: Any) -> str:
    return one_conv(net, **how)


# -- quantizers of training and of other frameworks


def _float_conv(net: Net, quantize: Callable[[Net, str | np.ndarray, int], str], bits: int = 8) -> str:
    """Convolution whose input and weights go through a fake quantizer."""
    x = quantize(net, net.input(net.floats(1, 4, 8, 8, low=-4, high=4)), 0)
    weights = quantize(net, net.floats(8, 4, 3, 3), 1)
    return quantize(net, net.op("Conv", x, weights, net.floats(8), pads=[1] * 4), 0)


def _as_qdq(net: Net, x: str | np.ndarray, kind: int) -> str:
    scale, zero = f(0.05 if kind == 0 else 1 / 127), np.array(0, np.int8)
    return net.op("DequantizeLinear", net.op("QuantizeLinear", x, scale, zero), scale, zero)


def _as_quant(domain: str) -> Callable[[Net, str | np.ndarray, int], str]:
    def write(net: Net, x: str | np.ndarray, kind: int) -> str:
        numbers = f(0.05 if kind == 0 else 1 / 127), f(0), f(8)
        return net.op("Quant", x, *numbers, domain=domain, signed=1, narrow=0, rounding_mode="ROUND")

    return write


def _as_trt(net: Net, x: str | np.ndarray, kind: int) -> str:
    scale = f(0.05 if kind == 0 else 1 / 127)
    return net.op("DequantizeLinear", net.op("QuantizeLinear", x, scale, np.array(0, np.int8)), scale)


def _as_fake(net: Net, x: str | np.ndarray, kind: int) -> str:
    """A fake quantizer, decomposed: x / s, round, clip, times s."""
    scale = f(0.05 if kind == 0 else 1 / 127)
    whole = net.op("Round", net.op("Div", x, scale))
    return net.op("Mul", net.op("Clip", whole, f(-128), f(127)), scale)


@spelled("quantized/fake")
def by_qdq(net: Net) -> str:
    return _float_conv(net, _as_qdq)


QONNX = ("onnx.brevitas", "qonnx.custom_op.general")


@spelled("quantized/fake", *({"domain": domain} for domain in QONNX), domains=QONNX, unknown=True, close=0.02)
def by_quant(net: Net, domain: str) -> str:
    return _float_conv(net, _as_quant(domain))


@spelled("quantized/fake")
def by_qdq_of_tensorrt(net: Net) -> str:
    return _float_conv(net, _as_trt)


_ROUND: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "ROUND": np.round, "FLOOR": np.floor, "CEIL": np.ceil, "ROUND_TO_ZERO": np.trunc,
    "HALF_UP": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
}  # fmt: skip
_TIES = np.arange(-40, 40, dtype=np.float32).reshape(1, 4, 4, 5) / 8


def _quant(x: str, net: Net, scale: np.ndarray, zero: float, bits: int, **more: Any) -> str:
    return net.op("Quant", x, scale, f(zero), f(bits), domain=QONNX[1], **more)


@spelled(
    "quantized/quant",
    *(
        {"bits": bits, "signed": signed, "narrow": narrow, "mode": mode}
        for bits in (2, 4, 8, 16)
        for signed in (0, 1)
        for narrow in (0, 1)
        for mode in ("ROUND", "FLOOR")
    ),
    *({"mode": mode} for mode in _ROUND),
    {"zero": 3}, {"zero": 2}, {"per": 4}, {"per": 4, "bits": 5}, {"per": 4, "zero": 1}, {"bits": 20},
    domains=QONNX, steps=None, room=99,
)  # fmt: skip
def quant(
    net: Net, bits: int = 8, signed: int = 1, narrow: int = 0, mode: str = "ROUND", zero: int = 0, per: int = 1
) -> str:
    scale = np.array([0.25, 0.5, 0.125, 1.0], np.float32)[:per].reshape(1, per, 1, 1)
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    low, high = low + narrow * signed, high - narrow * (1 - signed)
    whole = np.clip(_ROUND[mode](_TIES / scale + np.float32(zero)), low, high)
    net.wanted = {"v0": ((whole - zero) * scale).astype(np.float32)}
    return _quant(net.input(_TIES), net, scale, zero, bits, signed=signed, narrow=narrow, rounding_mode=mode)


@spelled("quantized/bipolar", domains=QONNX)
def bipolar(net: Net) -> str:
    net.wanted = {"v0": np.where(_TIES >= 0, 0.5, -0.5).astype(np.float32)}
    return net.op("BipolarQuant", net.input(_TIES), f(0.5), domain=QONNX[1])


@spelled("quantized/trunc", *({"mode": mode} for mode in _ROUND), domains=QONNX)
def trunc(net: Net, mode: str) -> str:
    net.wanted = {"v0": (_ROUND[mode](np.round(_TIES / np.float32(0.125)) / 4) * 0.125).astype(np.float32)}
    return net.op("Trunc", net.input(_TIES), f(0.125), f(0), f(8), f(6), domain=QONNX[1], rounding_mode=mode)


@spelled("quantized/float8", opset=19)
def float8(net: Net) -> str:
    zero = net.op("Cast", f(0), to=17)
    made = net.op("QuantizeLinear", net.input(_TIES), f(0.25), zero)
    return net.op("DequantizeLinear", made, f(0.25))


@spelled("quantized/float8", opset=19, domains=("trt",), unknown=True)
def float8_of_tensorrt(net: Net) -> str:
    made = net.op("TRT_FP8QuantizeLinear", net.input(_TIES), f(0.25), domain="trt")
    return net.op("TRT_FP8DequantizeLinear", made, f(0.25), domain="trt")


@spelled("quantized/quark")
def plain(net: Net) -> str:
    own = Quantized(net)
    return own.qdq(own.input(_TIES))


@spelled("quantized/quark", domains=("com.amd.quark",), unknown=True)
def extended(net: Net) -> str:
    own = Quantized(net)
    made = own.op("ExtendedQuantizeLinear", own.input(_TIES), own.scale, own.zero, domain="com.amd.quark")
    return own.op("ExtendedDequantizeLinear", made, own.scale, own.zero, domain="com.amd.quark")
