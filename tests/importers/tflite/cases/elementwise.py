"""Operators that work element by element."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..draw import BYTES, FLOAT, QUANTIZED, Draw, draws


def broadcast(draw: Draw) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Two shapes that fit together, and that of the result."""
    whole = draw.shape(1, 4)
    first = tuple(1 if draw.flip(0.15) else size for size in whole)
    second = tuple(1 if draw.flip(0.15) else size for size in whole)
    second = second[draw.int(0, len(whole) - 1) :] if draw.flip(0.3) else second
    return first, second, np.broadcast_shapes(first, second)


def binary(draw: Draw, types: Sequence[str], options: str = "", alike: bool = False, **fields: int) -> Sequence[int]:
    a, b, out = broadcast(draw)
    type = draw.pick(*types)
    first = draw.input(a, type)
    q = draw.alike(first) if alike else {}
    second = draw.constant(b, type) if draw.flip(0.3) and not alike else draw.input(b, type, **q)
    return draw.op([first, second], [draw.out(out, type, **q)], options, **fields)


@draws("ADD", "SUB")
def _add(draw: Draw) -> Sequence[int]:
    activation = draw.pick(0, 0, 1, 2, 3)
    name = draw.name.title()
    types = (*FLOAT, *QUANTIZED, "INT32") if draw.name == "ADD" or activation != 1 else (*FLOAT, *BYTES)
    return binary(draw, types, f"{name}Options", FusedActivationFunction=activation)


@draws("MUL")
def _mul(draw: Draw) -> Sequence[int]:
    types = (*FLOAT, *QUANTIZED, "INT32")
    return binary(draw, types, "MulOptions", FusedActivationFunction=draw.pick(0, 0, 1, 3))


@draws("DIV")
def _div(draw: Draw) -> Sequence[int]:
    a, b, out = broadcast(draw)
    type = draw.pick("FLOAT32", "INT32")
    range = (0.5, 3) if type == "FLOAT32" else (1, 9)
    operands = [draw.input(a, type), draw.input(b, type, range)]
    return draw.op(operands, [draw.out(out, type)], "DivOptions", FusedActivationFunction=draw.pick(0, 1, 3))


@draws("FLOOR_DIV", "FLOOR_MOD")
def _floor(draw: Draw) -> Sequence[int]:
    a, b, out = broadcast(draw)
    type = draw.pick("FLOAT32", "INT32", "INT32", *(["INT64"] if draw.name == "FLOOR_MOD" else []))
    range = draw.pick((0.5, 3), (-3, -0.5)) if type == "FLOAT32" else draw.pick((1, 9), (-9, -1))
    return draw.op([draw.input(a, type), draw.input(b, type, range)], [draw.out(out, type)])


@draws("MAXIMUM", "MINIMUM")
def _extreme(draw: Draw) -> Sequence[int]:
    return binary(draw, (*FLOAT, "INT8", "UINT8", "INT16", "INT32", "INT64"), alike=True)


@draws("SQUARED_DIFFERENCE")
def _squared(draw: Draw) -> Sequence[int]:
    return binary(draw, (*FLOAT, "INT8", "INT32"))


@draws("POW")
def _pow(draw: Draw) -> Sequence[int]:
    a, b, out = broadcast(draw)
    type = draw.pick("FLOAT32", "INT32")
    ranges = ((0.1, 3), (-2, 2)) if type == "FLOAT32" else ((-5, 5), (0, 5))
    return draw.op([draw.input(a, type, ranges[0]), draw.input(b, type, ranges[1])], [draw.out(out, type)])


@draws("ATAN2")
def _atan2(draw: Draw) -> Sequence[int]:
    shape = draw.shape()
    return draw.op([draw.input(shape), draw.input(shape)], [draw.out(shape)], "ATan2Options")


@draws("ADD_N")
def _add_n(draw: Draw) -> Sequence[int]:
    shape, type = draw.shape(), draw.pick("FLOAT32", "INT32")
    return draw.op([draw.input(shape, type) for _ in range(draw.int(2, 4))], [draw.out(shape, type)], "AddNOptions")


@draws("BITWISE_XOR")
def _xor(draw: Draw) -> Sequence[int]:
    a, b, out = broadcast(draw)
    type = draw.pick("INT32", "INT8")
    operands = [draw.net.input(shape, type) for shape in (a, b)]
    return draw.op(operands, [draw.net.tensor(out, type)], "BitwiseXorOptions")


@draws("RIGHT_SHIFT")
def _shift(draw: Draw) -> Sequence[int]:
    a, b, out = broadcast(draw)
    operands = [draw.net.input(shape, "INT32") for shape in (a, b)]
    draw.ranges[operands[1]] = (0, 9)
    return draw.op(operands, [draw.net.tensor(out, "INT32")], "RightShiftOptions")


def unary(draw: Draw, types: Sequence[str], **fields: object) -> Sequence[int]:
    shape, type = draw.shape(), draw.pick(*types)
    x = draw.input(shape, type)
    return draw.op([x], [draw.out(shape, type)], **fields)


@draws("ABS", "NEG")
def _abs(draw: Draw) -> Sequence[int]:
    types = (*FLOAT, "INT32") if draw.name == "NEG" else (*FLOAT, "INT32", "INT8", "INT16")
    return unary(draw, types, options=f"{draw.name.title()}Options")


@draws("CEIL", "COS", "FLOOR", "ROUND", "SIN", "SIGN", "SQUARE")
def _float(draw: Draw) -> Sequence[int]:
    return unary(draw, FLOAT)


@draws("EXP", halves=4)
def _exp(draw: Draw) -> Sequence[int]:
    shape, type = draw.shape(), draw.pick("FLOAT32", "INT8", "INT16")
    if type == "FLOAT32":
        return draw.op([draw.input(shape, type)], [draw.out(shape, type)], "ExpOptions")
    q = [{"scale": 0.02, "zero": 0}, {"scale": 0.08, "zero": -128}]
    if type == "INT16":
        q = [{"scale": 0.0001, "zero": 0}, {"scale": 0.001, "zero": 0}]
    return draw.op([draw.input(shape, type, **q[0])], [draw.out(shape, type, **q[1])], "ExpOptions")


@draws("LOG", "SQRT", "RSQRT")
def _positive(draw: Draw) -> Sequence[int]:
    shape = draw.shape()
    if draw.name == "SQRT" or draw.flip():
        return draw.op([draw.input(shape, range=(0.05, 4))], [draw.out(shape)])
    x = draw.input(shape, "INT8", (-120, 127), scale=0.05, zero=-128)
    q = {"scale": 0.02, "zero": -30} if draw.name == "LOG" else {"scale": 0.01, "zero": -128}
    return draw.op([x], [draw.out(shape, "INT8", **q)])


@draws("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
def _relu(draw: Draw) -> Sequence[int]:
    types = {"RELU": (*FLOAT, *QUANTIZED), "RELU6": (*FLOAT, *QUANTIZED)}.get(draw.name, (*FLOAT, "INT8", "UINT8"))
    return unary(draw, types)


@draws("LOGISTIC", "TANH")
def _sigmoid(draw: Draw) -> Sequence[int]:
    shape, type = draw.shape(), draw.pick(*FLOAT, *QUANTIZED)
    tanh = draw.name == "TANH"
    q = {
        "INT8": {"scale": 1 / 128 if tanh else 1 / 256, "zero": 0 if tanh else -128},
        "UINT8": {"scale": 1 / 128 if tanh else 1 / 256, "zero": 128 if tanh else 0},
        "INT16": {"scale": 1 / 32768, "zero": 0},
    }.get(type, {})
    x = draw.input(shape, type, scale=1 / 4096, zero=0) if type == "INT16" else draw.input(shape, type)
    return draw.op([x], [draw.out(shape, type, **q)])


@draws("ELU", "HARD_SWISH")
def _elu(draw: Draw) -> Sequence[int]:
    return unary(draw, (*FLOAT, "INT8") if draw.name == "ELU" else (*FLOAT, *BYTES))


@draws("GELU")
def _gelu(draw: Draw) -> Sequence[int]:
    return unary(draw, (*FLOAT, "INT8", "UINT8"), options="GeluOptions", Approximate=draw.flip())


@draws("LEAKY_RELU")
def _leaky(draw: Draw) -> Sequence[int]:
    return unary(draw, (*FLOAT, *QUANTIZED), options="LeakyReluOptions", Alpha=draw.pick(0.01, 0.1, 0.3))


@draws("PRELU")
def _prelu(draw: Draw) -> Sequence[int]:
    shape, type = draw.shape(4, 4), draw.pick(*FLOAT, *BYTES)
    alpha = draw.constant((1, 1, shape[-1]), type)
    return draw.op([draw.input(shape, type), alpha], [draw.out(shape, type)])


@draws("LOGICAL_NOT")
def _not(draw: Draw) -> Sequence[int]:
    return unary(draw, ("BOOL",), options="LogicalNotOptions")


@draws("ZEROS_LIKE")
def _zeros(draw: Draw) -> Sequence[int]:
    return unary(draw, (*FLOAT, "INT32", "INT64"), options="ZerosLikeOptions")


@draws("LOGICAL_AND", "LOGICAL_OR")
def _logic(draw: Draw) -> Sequence[int]:
    a, b, out = broadcast(draw)
    return draw.op([draw.input(a, "BOOL"), draw.input(b, "BOOL")], [draw.out(out, "BOOL")])


@draws("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
def _compare(draw: Draw) -> Sequence[int]:
    a, b, out = broadcast(draw)
    type = draw.pick(*FLOAT, "INT8", "UINT8", "INT32", "INT64")
    first = draw.input(a, type, None if type in BYTES else (-3, 3))
    second = draw.input(b, type, None if type in BYTES else (-3, 3), **draw.alike(first))
    return draw.op([first, second], [draw.out(out, "BOOL")])


@draws("CAST")
def _cast(draw: Draw) -> Sequence[int]:
    shape, source = draw.shape(), draw.pick("FLOAT32", "INT32", "BOOL", "INT64")
    target = draw.pick("FLOAT32", "INT32", "INT64", "BOOL")
    x, y = draw.net.input(shape, source), draw.net.tensor(shape, target)
    return draw.op([x], [y], "CastOptions")


@draws("QUANTIZE")
def _quantize(draw: Draw) -> Sequence[int]:
    shape, source, target = draw.shape(), draw.pick(*FLOAT, *QUANTIZED), draw.pick(*QUANTIZED)
    if source in BYTES and target == "INT16":
        source = "FLOAT32"
    return draw.op([draw.input(shape, source)], [draw.out(shape, target)], "QuantizeOptions")


@draws("DEQUANTIZE")
def _dequantize(draw: Draw) -> Sequence[int]:
    shape, source = draw.shape(), draw.pick(*QUANTIZED, "FLOAT16")
    if source == "FLOAT16":
        x = draw.net.constant(draw.chance.uniform(-3, 3, shape).astype(np.float16))
        other, made = draw.input(shape), draw.out(shape)
        floats = draw.out(shape)
        draw.op([x], [floats], "DequantizeOptions")
        draw.net.op("ADD", [other, floats], [made], "AddOptions")
        return [made]
    return draw.op([draw.input(shape, source)], [draw.out(shape)], "DequantizeOptions")


@draws("FAKE_QUANT")
def _fake_quant(draw: Draw) -> Sequence[int]:
    shape = draw.shape()
    fields = {"Min": -float(draw.int(1, 3)), "Max": float(draw.int(1, 3)), "NumBits": 8, "NarrowRange": False}
    return draw.op([draw.input(shape)], [draw.out(shape)], "FakeQuantOptions", **fields)
