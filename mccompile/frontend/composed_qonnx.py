"""QONNX's operators besides its quantizers of integers: quantizers of small floats, and ONNX's operators over tensors
whose channels are the last axis.

Invariant: floats come out as their format has them; ties go to even ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from ..graph.ir import Invalid, Unsupported
from .composed_body import Body
from .composed_pieces import one_number

_DOMAINS = ("onnx.brevitas", "qonnx.custom_op.general")
_LAST = "qonnx.custom_op.channels_last"
_MANTISSA, _BIAS = 23, 127  # of a float of 32 bits
_WHAT = ("the exponent's bits", "the mantissa's bits", "the exponent's bias", "the largest value")


def _float_quant(body: Body) -> None:
    body.only("signed", "rounding_mode", "has_inf", "has_nan", "has_subnormal", "saturation")
    if not body.attribute("saturation", 1) or str(body.attribute("rounding_mode", "ROUND")).upper() != "ROUND":
        raise Unsupported("floats that do not saturate, or do not round to even", "quantize with rounding_mode ROUND")
    exponent, mantissa = (int(_number(body, index)) for index in (2, 3))
    bias = int(_number(body, 4)) if body.has(4) else (1 << (exponent - 1)) - 1
    largest = (2 - 2.0**-mantissa) * 2.0 ** ((1 << exponent) - 1 - bias)
    if body.has(5):
        largest = min(largest, _number(body, 5))
    least = 1 - bias - mantissa  # the exponent of the smallest step
    if not 1 <= mantissa < _MANTISSA or not -_BIAS < least <= _BIAS:
        raise Unsupported(f"floats of {exponent} and {mantissa} bits with the bias {bias}")
    body.opset = 26  # that has BitCast
    x = body.op("Div", body.operand(0), body.operand(1))
    bits = body.op("BitCast", body.op("Abs", x), to=TensorProto.UINT32)
    place = body.op("Cast", body.op("BitShift", bits, _word(body), direction="RIGHT"), to=TensorProto.INT32)
    lowest = body.constant(np.array(least + _BIAS, np.int32))
    place = body.op("Max", body.op("Sub", place, body.constant(np.array(mantissa, np.int32))), lowest)
    place = body.op("Cast", place, to=TensorProto.UINT32)
    step = body.op("BitCast", body.op("BitShift", place, _word(body), direction="LEFT"), to=TensorProto.FLOAT)
    whole = body.op("Mul", body.op("Round", body.op("Div", x, step)), step)
    low = 0.0 if not body.attribute("signed", 1) else -largest
    kept = body.op("Clip", whole, body.number(low), body.number(largest))
    body.give(0, body.op("Mul", kept, body.operand(1)))


def _word(body: Body) -> str:
    return body.constant(np.array(_MANTISSA, np.uint32))


def _number(body: Body, index: int) -> float:
    return one_number(body, index, _WHAT[index - 2])


def _over_channels_last(name: str) -> Callable[[Body], None]:
    def write(body: Body) -> None:
        rank = body.type(0).rank
        if rank < 3:
            raise Invalid(f"x {body.type(0)} has no axes besides those of the batch and the channels")
        ins = [body.channels_last(body.operand(0), rank), *(body.operand(i) for i in range(1, len(body.operands)))]
        if name == "Conv":  # weights lie as pictures do
            ins[1] = body.channels_last(ins[1], rank)
        body.give(0, body.channels_last(body.op(name, *ins, **body.attributes), rank, back=True))

    return write


WRITERS: dict[tuple[str, str], Callable[[Body], None]] = {
    **{(domain, "FloatQuant"): _float_quant for domain in _DOMAINS},
    **{(_LAST, name): _over_channels_last(name) for name in ("BatchNormalization", "Conv", "MaxPool")},
}
