"""gemm: matrix products a[..., M, K] x b[..., K, N]; leading axes are batches, broadcast by views. Transposed operands
are views too.

After a and b come zero points where there are any (of a: [..., M]; of b: [..., N]), then the operands of the epilogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim
from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.summation_error import ANY
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, WithEpilogue


@dataclass(frozen=True)
class Gemm(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ("a", "b")
    optional: ClassVar[tuple[str, ...]] = ("a_zero", "b_zero")
    accumulator: DType
    epilogue: Expr | None = None
    a_zero: bool = False  # is there a zero point of a among the operands?
    b_zero: bool = False
    rounding: int = ANY  # how exactly sums are made: see base/summation_error.py
    palette: bool = False  # does b take few values? Kernels may store indices of these then

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) < self.fixed or len(outs) != 1:
            return f"a gemm like this has at least {self.fixed} operands and one result"
        a, b = ins[:2]
        if min(a.rank, b.rank) < 2 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
            return f"a {a} and b {b} do not fit together"
        zeros = [TensorType(a.dtype, a.shape[:-1])] * self.a_zero
        zeros += [TensorType(b.dtype, (*b.shape[:-2], b.shape[-1]))] * self.b_zero
        if list(ins[2 : self.fixed]) != zeros:
            return f"the zero points are {', '.join(map(str, ins[2 : self.fixed]))}, not {', '.join(map(str, zeros))}"
        element = TensorType(self.accumulator, (*a.shape[:-1], b.shape[-1]))
        return self.check_epilogue(element, ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        batch, (rows, columns) = box[:-2], box[-2:]
        inner = (0, ins[0][-1])
        zeros = [(*batch, rows)] * self.a_zero + [(*batch, columns)] * self.b_zero
        return ((*batch, rows, inner), (*batch, inner, columns), *zeros, *(box for _ in ins[self.fixed :]))

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * ins[0].shape[-1]
