"""attention: softmax(score(q[..., M, K] x k[..., K, N])) x v[..., N, C]; leading axes are batches, broadcast by views.

`score` is an expression over the product (operand 0) and the operands behind v, each a view of [..., M, N]; those of
the epilogue, views of [..., M, C], come last. Keys and values may be stored in fewer bits than the sums have. With
`scaled` each row of v has a factor, a view of [..., M, N] behind the operands of the score. A row whose scores are all
-infinity, or one of them no number, has no shares: it gives NaN, as Softmax does, or with `or_zero` 0, which is then
the element that the epilogue takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim, bounds
from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, WithEpilogue, check_expression


@dataclass(frozen=True)
class Attention(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ("q", "k", "v")
    accumulator: DType
    score: Expr | None = None  # none: the product itself
    operands: int = 0  # of the score, besides the product
    or_zero: bool = False
    epilogue: Expr | None = None
    scaled: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.roles, *(f"s{number}" for number in range(self.operands)), *["scale"] * self.scaled)

    def expressions(self) -> tuple[Expr, ...]:
        return (*([self.score] if self.score else []), *super().expressions())

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) < self.fixed or len(outs) != 1:
            return f"attention like this has at least {self.fixed} operands and one result"
        q, k, v = ins[:3]
        if min(q.rank, k.rank, v.rank) < 2 or not q.shape[:-2] == k.shape[:-2] == v.shape[:-2]:
            return f"q {q}, k {k} and v {v} do not fit together"
        if q.shape[-1] != k.shape[-2] or k.shape[-1] != v.shape[-2]:
            return f"q {q}, k {k} and v {v} do not fit together"
        if bounds(k.shape[-1])[0] < 1:
            return f"k {k} may have no columns"
        product = TensorType(self.accumulator, (*q.shape[:-1], k.shape[-1]))
        if self.score is not None:
            reason = check_expression(self.score, [product, *ins[3 : 3 + self.operands]], product)
            if reason:
                return reason
        elif self.operands:
            return "operands of a score that is the product itself"
        if self.scaled and ins[self.fixed - 1] != product:
            return f"factors of values are {ins[self.fixed - 1]}, not {product}"
        return self.check_epilogue(TensorType(self.accumulator, (*q.shape[:-1], v.shape[-1])), ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        batch, (rows, columns) = box[:-2], box[-2:]
        inner, keys = (0, ins[0][-1]), (0, ins[1][-1])
        scores = [(*batch, rows, keys)] * (self.operands + self.scaled)
        fixed = ((*batch, rows, inner), (*batch, inner, keys), (*batch, keys, columns), *scores)
        return (*fixed, *(box for _ in ins[self.fixed :]))

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        rows: Dim = ins[0].count
        return rows * ins[1].shape[-1] + outs[0].count * ins[1].shape[-1]
