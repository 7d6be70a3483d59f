"""band_gemm: matrix products a[..., M, K] x b[K, N] where each column of b is 0 but for a short run of rows: filters of
a spectrum, and what is interpolated.

Operands are a, the first row of each column's run as first[N], the runs as b[N, run], then those of the epilogue. What
lies outside of the runs is not multiplied, so infinities and NaN reach only the sums that weigh them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim, bounds
from ..base.dtypes import DType, i32
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, Check, WithEpilogue, whole, within


@dataclass(frozen=True)
class BandGemm(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ("a", "first", "b")
    accumulator: DType
    epilogue: Expr | None = None

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) < self.fixed or len(outs) != 1 or ins[0].rank < 2:
            return f"a product like this has at least {self.fixed} operands and one result"
        a, first, b = ins[:3]
        if b.rank != 2 or first != TensorType(i32, b.shape[:1]) or bounds(a.shape[-1] - b.shape[1])[0] < 0:
            return f"first {first} and b {b} do not fit a {a}"
        return self.check_epilogue(TensorType(self.accumulator, (*a.shape[:-1], b.shape[0])), ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        columns = box[-1]
        a = (*box[:-1], (0, ins[0][-1]))
        return (a, (columns,), (columns, *whole(ins[2][1:])), *(box for _ in ins[self.fixed :]))

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        return (within(1, 0, bounds(ins[0].shape[-1] - ins[2].shape[1])[0]),)

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * ins[2].shape[1]
