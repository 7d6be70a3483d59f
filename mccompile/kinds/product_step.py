"""product_step: what one step of learning does with a product y = x w^T, of which dy [positions, outputs] is the
gradient: result 0 is that of x [positions, inputs], made with the old w [outputs, inputs]; result 1 is the new w.

Result 0 is `hand` of dy w, result 1 is `move` of dy^T x. Operand 0 of these expressions is an element of the product;
operands of `hand` follow w, those of `move` come last. A kernel may write the results over x and w, some inputs after
the other: nothing else as large is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim
from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr
from .api import Kind, check_expression


@dataclass(frozen=True)
class ProductStep(Kind):
    roles: ClassVar[tuple[str, ...]] = ("dy", "x", "w")
    accumulator: DType
    hand: Expr
    move: Expr
    handed: int  # operands of `hand`

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) < 3 + self.handed or len(outs) != 2 or any(type.rank != 2 for type in (*ins, *outs)):
            return "a product step has dy, x, w and what its expressions read, and two results, all of rank 2"
        (positions, outputs), inputs = ins[0].shape, ins[1].shape[1]
        x = TensorType(self.accumulator, (positions, inputs))
        w = TensorType(self.accumulator, (outputs, inputs))
        if ins[1].shape != x.shape or ins[2].shape != w.shape:
            return f"dy {ins[0]}, x {ins[1]} and w {ins[2]} do not fit together"
        first = 3 + self.handed
        return (
            self._result(outs[0], x)
            or self._result(outs[1], w)
            or check_expression(self.hand, [x, *ins[3:first]], outs[0])
            or check_expression(self.move, [w, *ins[first:]], outs[1])
        )

    def _result(self, out: TensorType, element: TensorType) -> str:
        return "" if out.shape == element.shape else f"the result has shape {out}, not {element}"

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return 2 * ins[0].count * ins[1].shape[1]

    def expressions(self) -> tuple[Expr, ...]:
        return self.hand, self.move
