"""gemm: matrix products a[..., M, K] x b[..., K, N]; leading axes are batches, broadcast by views. Transposed operands are views too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..base.dims import Dim
from ..base.dtypes import DType
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, WithEpilogue


@dataclass(frozen=True)
class Gemm(WithEpilogue):
    name: ClassVar[str] = "gemm"
    roles: ClassVar[tuple[str, ...]] = ("a", "b")
    accumulator: DType
    epilogue: Expr | None = None

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) < 2 or len(outs) != 1:
            return "a gemm has operands a and b and one result"
        a, b = ins[:2]
        if min(a.rank, b.rank) < 2 or a.shape[:-2] != b.shape[:-2] or a.shape[-1] != b.shape[-2]:
            return f"a {a} and b {b} do not fit together"
        element = TensorType(self.accumulator, (*a.shape[:-1], b.shape[-1]))
        return self.check_epilogue(element, ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        batch, (rows, columns) = box[:-2], box[-2:]
        inner = (0, ins[0][-1])
        return ((*batch, rows, inner), (*batch, inner, columns), *(box for _ in ins[2:]))

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * ins[0].shape[-1]
