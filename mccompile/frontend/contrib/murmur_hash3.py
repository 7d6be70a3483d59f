"""MurmurHash3: hashes of 32 bits of numbers, 4 bytes after the other."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from ...graph.ir import Unsupported
from ..composed_body import Body
from ..contributed import writes

_PLAIN = (TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT32)
_WIDE = (TensorProto.DOUBLE, TensorProto.INT64, TensorProto.UINT64)


@writes(
    "MurmurHash3",
    "g (int32[3, 4] x) => (uint32[3, 4] y) { y = com.microsoft.MurmurHash3 <seed = 7> (x) }",
    "g (double[5] x) => (int32[5] y) { y = com.microsoft.MurmurHash3 <positive = 0> (x) }",
)
def murmur_hash3(body: Body) -> None:
    body.only("positive", "seed")
    dtype = body.type(0).dtype.onnx
    body.opset = 26  # that has BitCast
    if dtype in _PLAIN:
        blocks = [body.op("BitCast", "in0", to=TensorProto.UINT32)]
    elif dtype in _WIDE:
        whole = body.op("BitCast", "in0", to=TensorProto.UINT64)
        high = body.op("BitShift", whole, body.constant(np.array(32, np.uint64)), direction="RIGHT")
        low = body.op("BitwiseAnd", whole, body.constant(np.array(0xFFFFFFFF, np.uint64)))
        blocks = [body.op("Cast", part, to=TensorProto.UINT32) for part in (low, high)]
    else:
        fix = "hash in your program, and give the hashes to the model"
        raise Unsupported(f"hashes of {body.type(0).dtype}", fix)
    made = _word(body, int(body.attribute("seed", 0)))
    for block in blocks:
        block = _turned(body, body.op("Mul", block, _word(body, 0xCC9E2D51)), 15)
        block = body.op("Mul", block, _word(body, 0x1B873593))
        made = _turned(body, body.op("BitwiseXor", made, block), 13)
        made = body.op("Add", body.op("Mul", made, _word(body, 5)), _word(body, 0xE6546B64))
    made = body.op("BitwiseXor", made, _word(body, 4 * len(blocks)))
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        made = body.op("BitwiseXor", made, body.op("BitShift", made, _word(body, shift), direction="RIGHT"))
        made = body.op("Mul", made, _word(body, factor)) if factor != 1 else made
    signed = not body.attribute("positive", 1)
    body.give(0, body.op("BitCast", made, to=TensorProto.INT32) if signed else made, False)


def _word(body: Body, value: int) -> str:
    return body.constant(np.array(value & 0xFFFFFFFF, np.uint32))


def _turned(body: Body, x: str, by: int) -> str:
    """Bits shifted to the left, and those that fall out put in on the right."""
    left = body.op("BitShift", x, _word(body, by), direction="LEFT")
    return body.op("BitwiseOr", left, body.op("BitShift", x, _word(body, 32 - by), direction="RIGHT"))
