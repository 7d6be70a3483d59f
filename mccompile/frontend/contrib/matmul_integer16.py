"""MatMulInteger16: products of int16 matrices, summed in 32 bits."""

from __future__ import annotations

from onnx import TensorProto

from ..composed_body import Body
from ..contributed import writes


@writes(
    "MatMulInteger16",
    "g (int16[2, 3, 5] a, int16[5, 4] b) => (int32[2, 3, 4] y) { y = com.microsoft.MatMulInteger16 (a, b) }",
)
def matmul_integer16(body: Body) -> None:
    sides = [body.op("Cast", body.operand(i), to=TensorProto.INT32) for i in range(2)]
    body.give(0, body.op("MatMul", *sides), False)
