"""MatMulFpQ4: a product with weights as onnxruntime packs them: in blocks of 32 numbers of 4 bits along each column.

Invariant: of the 16 bytes of a block, the lower halves are its first 16 numbers, the upper halves the others.
"""

from __future__ import annotations

import numpy as np

from ...base.dtypes import DTYPES
from ...graph.ir import Invalid, Unsupported
from ..composed_blocks import contents
from ..composed_body import Body
from ..contributed import writes

_BLOCK, _HALF = 32, 8
_SCALE = (60, 205, 204, 61)  # a float, as bytes


def _example(form: int, head: tuple[int, ...]) -> str:
    blocks = [[*_SCALE, *head, *((i * 37 + n * 11) % 256 for i in range(16))] for n in range(4)]
    packed = [str(number) for block in blocks for number in block]
    return (
        f"g (float[3, 40] x) => (float[3, 2] y) <uint8[{len(packed)}] w = {{{', '.join(packed)}}},"
        f" int64[2] s = {{40, 2}}> {{ y = com.microsoft.MatMulFpQ4 <blk_quant_type = {form}> (x, w, s) }}"
    )


@writes("MatMulFpQ4", _example(0, ()), _example(1, (5,)))
def matmul_fp_q4(body: Body) -> None:
    body.only("blk_quant_type")
    form, shape = int(body.attribute("blk_quant_type", 1)), body.value(2)
    if form not in (0, 1):
        raise Unsupported(f"blk_quant_type {form}", "export the weights with blk_quant_type 0 or 1, in blocks of 32")
    if shape is None or shape.constant is None:
        raise Unsupported("B_shape is computed at run time", "make it a constant of the model")
    if shape.constant.array.shape != (2,):
        raise Invalid(f"B_shape is {shape.type}, not two sizes")
    depth, columns = (int(size) for size in shape.constant.array)
    count = -(-depth // _BLOCK)
    packed, room = contents(body, 1, "the packed weights").reshape(-1), 4 + form + _BLOCK // 2
    if packed.size != columns * count * room:
        raise Invalid(f"{packed.size} bytes are not {columns} x {count} blocks of {room} bytes")
    blocks = packed.reshape(columns, count, room)
    scales = np.ascontiguousarray(blocks[..., :4]).view("<f4").reshape(columns, count).astype(np.float32)
    halves = blocks[..., -_BLOCK // 2 :]
    numbers = np.concatenate([halves & 15, halves >> 4], axis=-1).reshape(columns, -1)[:, :depth]
    if form:
        points = blocks[..., 4]
        if points.max(initial=0) > 15:
            raise Unsupported(f"a zero point of {points.max()} for numbers of 4 bits", "quantize the weights again")
        arrays = [numbers.astype(DTYPES["u4"].numpy), scales, points.astype(DTYPES["u4"].numpy)]
    else:
        arrays = [(numbers.astype(np.int8) - _HALF).astype(DTYPES["i4"].numpy), scales]
    weights = body.op("DequantizeLinear", *map(body.constant, arrays), axis=1, block_size=_BLOCK)
    body.give(0, body.op("MatMul", body.operand(0), body.op("Transpose", weights, perm=[1, 0])))
