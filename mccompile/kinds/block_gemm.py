"""block_gemm: products a[M, K] x b[K, N] whose right operand is stored in few bits: integers of 2 to 8 bits, with a
scale, and maybe a zero point, for every block of `block` elements along K (the last one may be shorter).

After a, b and scale[blocks, N], of f32, or f16 without denormals, come the zero points [blocks, N] where there are any,
as 8-bit integers with or without a sign as b, then the operands of the epilogue. An element of b is worth
(b - zero) * scale; it is unpacked where it is multiplied. Where a call `rounds`, kernels may round a to int8, in blocks
of each row like those of b; others ignore it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim, ceil_div
from ..base.dtypes import f16, f32, i8, u8
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, WithEpilogue


@dataclass(frozen=True)
class BlockGemm(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ("a", "b", "scale")
    block: int
    zeros: bool = False  # are there zero points among the operands?
    epilogue: Expr | None = None
    rounds: bool = False  # may a be rounded to int8?

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.roles, *["b_zero"] * self.zeros)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) < self.fixed or len(outs) != 1:
            return f"a block_gemm like this has at least {self.fixed} operands and one result"
        a, b, scale = ins[:3]
        if (a.rank, b.rank) != (2, 2) or a.shape[1] != b.shape[0] or not a.dtype.is_float:
            return f"a {a} and b {b} do not fit together"
        if not b.dtype.is_integer or b.dtype.bits > 8 or self.block < 1:
            return f"b {b} in blocks of {self.block} is not of few bits"
        blocks = (ceil_div(b.shape[0], self.block), b.shape[1])
        if scale.dtype not in (f32, f16) or scale.shape != blocks:
            return f"the scales are {scale}, not {TensorType(f32, blocks)}"
        zero = TensorType(i8 if b.dtype.kind == "int" else u8, blocks)
        if self.zeros and ins[3] != zero:
            return f"the zero points are {ins[3]}, not {zero}"
        return self.check_epilogue(TensorType(f32, (a.shape[0], b.shape[1])), ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        rows, columns = box
        blocks = [((0, ins[2][0]), columns)] * (1 + self.zeros)
        return ((rows, (0, ins[0][1])), ((0, ins[1][0]), columns), *blocks, *(box for _ in ins[self.fixed :]))

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * ins[0].shape[1]
