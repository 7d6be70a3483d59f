"""What quantizers write in domains of their own, as QuantizeLinear and DequantizeLinear where it means that: Brevitas
and QONNX (any number of bits, any rounding), TensorRT's explicit forms, AMD Quark's extended ones.

Invariant: integers come out as the quantizer defines them, ties and bounds included.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import TensorProto

from ..base.dtypes import DTYPES
from ..graph.ir import Invalid, Unsupported
from .composed_body import Body
from .composed_pieces import one_number

BREVITAS = ("onnx.brevitas", "qonnx.custom_op.general")
TENSORRT = ("trt", "TRT")
QUARK = "com.amd.quark"


def _quant(body: Body) -> None:
    """x / scale + zero point, rounded, within the bounds of so many bits, and back."""
    body.only("signed", "narrow", "rounding_mode")
    low, high = _span(body, 3, int(body.attribute("signed", 1)), int(body.attribute("narrow", 0)))
    zero = _number(body, 2, "the zero point")
    mode = str(body.attribute("rounding_mode", "ROUND")).upper()
    axis = _channels(body)
    small = next((name for name in ("i8", "u8", "i16", "u16") if _holds(name, low, high)), None)
    if mode in ("ROUND", "HALF_EVEN") and zero % 2 == 0 and axis is not None and small:  # ties go to even integers
        dtype = DTYPES[small]
        flat = body.ints(-1) if axis >= 0 else body.constant(np.zeros(0, np.int64))
        scale = body.op("Reshape", body.operand(1), flat)
        count = body.type(1).count if axis >= 0 else 1
        assert isinstance(count, int)
        points = body.constant(np.full((count,) if axis >= 0 else (), zero, dtype.numpy))
        x = body.operand(0)
        if (low, high) != (dtype.low, dtype.high):
            least, most = (body.op("Mul", body.number(edge - zero), body.operand(1)) for edge in (low, high))
            if axis >= 0:
                x = body.op("Min", body.op("Max", x, least), most)
            else:
                x = body.op("Clip", x, *(body.op("Reshape", bound, flat) for bound in (least, most)))
        more = {"axis": axis} if axis >= 0 else {}
        integers = body.op("QuantizeLinear", x, scale, points, **more)
        body.give(0, body.op("DequantizeLinear", integers, scale, points, **more))
        return
    places = body.op("Add", body.op("Div", body.operand(0), body.operand(1)), body.operand(2))
    whole = body.op("Clip", _rounded(body, places, mode), body.number(low), body.number(high))
    body.give(0, body.op("Mul", body.op("Sub", whole, body.operand(2)), body.operand(1)))


def _bipolar_quant(body: Body) -> None:
    body.only()
    up = body.op("GreaterOrEqual", body.operand(0), body.number(0.0))
    signs = body.op("Where", up, body.number(1.0), body.number(-1.0))
    body.give(0, body.op("Mul", signs, body.operand(1)))


def _trunc(body: Body) -> None:
    """Lowest bits are taken away from integers that floats stand for."""
    body.only("rounding_mode")
    if len(body.operands) != 5:
        raise Unsupported(f"{len(body.operands)} operands", "export the model with the Trunc of five operands")
    less = _number(body, 3, "the bits before") - _number(body, 4, "the bits behind")
    places = body.op("Round", body.op("Add", body.op("Div", body.operand(0), body.operand(1)), body.operand(2)))
    mode = str(body.attribute("rounding_mode", "FLOOR")).upper()
    whole = _rounded(body, body.op("Mul", places, body.number(2.0**-less)), mode)
    body.give(0, body.op("Mul", body.op("Sub", whole, body.operand(2)), body.operand(1)))


def _rounded(body: Body, x: str, mode: str) -> str:
    if mode in ("ROUND", "HALF_EVEN"):
        return body.op("Round", x)
    if mode in ("FLOOR", "CEIL"):
        return body.op(mode.capitalize(), x)
    size, half = body.op("Abs", x), body.number(0.5)
    match mode:
        case "UP":
            size = body.op("Ceil", size)
        case "DOWN" | "ROUND_TO_ZERO":
            size = body.op("Floor", size)
        case "HALF_UP":
            size = body.op("Floor", body.op("Add", size, half))
        case "HALF_DOWN":
            size = body.op("Ceil", body.op("Sub", size, half))
        case _:
            raise Unsupported(f"rounding_mode {mode!r}", "export the model with rounding_mode ROUND")
    return body.op("Mul", body.op("Sign", x), size)


def _span(body: Body, operand: int, signed: int, narrow: int) -> tuple[int, int]:
    """The least and the largest integer of so many bits."""
    bits = _number(body, operand, "the number of bits")
    if not 1 <= bits <= 24:
        raise Unsupported(f"{bits} bits", "quantize to at most 24 bits")
    return (-(1 << (bits - 1)) + narrow, (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1 - narrow)


def _holds(name: str, low: int, high: int) -> bool:
    return DTYPES[name].low <= low and high <= DTYPES[name].high


def _number(body: Body, index: int, what: str) -> int:
    number = one_number(body, index, what)
    if number != int(number):
        raise Unsupported(f"{what} is {number}", "export the model with whole numbers")
    return int(number)


def _channels(body: Body) -> int | None:
    """The axis that scales belong to; -1 where there is one scale, None where they have several axes."""
    shape, rank = body.type(1).shape, body.type(0).rank
    wide = [axis - len(shape) + rank for axis, dim in enumerate(shape) if dim != 1]
    return -1 if not wide else wide[0] if len(wide) == 1 and len(shape) <= rank else None


def _float8_quantize(body: Body) -> None:
    body.only("axis")
    zeros = body.op("Cast", body.op("Mul", body.as_float("in1"), body.number(0.0)), to=TensorProto.FLOAT8E4M3FN)
    made = body.op("QuantizeLinear", "in0", "in1", zeros, **body.picked("axis"))
    body.give(0, made, False)


def _dequantize(body: Body) -> None:
    body.only("axis", "block_size")
    scale = body.type(1)
    more = body.picked("axis", "block_size")
    if body.attribute("block_size", 0) and scale.rank != body.type(0).rank:
        raise Invalid(f"scales {scale} for blocks of {body.type(0)}")
    body.give(0, body.op("DequantizeLinear", *_as_given(body), **more), False)


def _quantize(body: Body) -> None:
    body.only("axis", "block_size", "saturate")
    more = body.picked("axis", "block_size", "saturate")
    body.give(0, body.op("QuantizeLinear", *_as_given(body), **more), False)


def _as_given(body: Body) -> list[str]:
    """The operands in their own types, which floats of 8 bits have to keep."""
    return [f"in{index}" if body.has(index) else "" for index in range(3)]


WRITERS: dict[tuple[str, str], Callable[[Body], None]] = {
    **{(d, name): _quant for d in BREVITAS for name in ("Quant", "IntQuant")},
    **{(d, "BipolarQuant"): _bipolar_quant for d in BREVITAS},
    **{(d, "Trunc"): _trunc for d in BREVITAS},
    **{(d, "TRT_FP8QuantizeLinear"): _float8_quantize for d in TENSORRT},
    **{(d, "TRT_FP8DequantizeLinear"): _dequantize for d in TENSORRT},
    **{(d, "TRT_INT4DequantizeLinear"): _dequantize for d in TENSORRT},
    (QUARK, "ExtendedQuantizeLinear"): _quantize,
    (QUARK, "ExtendedDequantizeLinear"): _dequantize,
}
