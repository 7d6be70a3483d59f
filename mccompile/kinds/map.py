"""map: every element of the result is an expression over the elements of the operands at the same place.

Broadcasting, transposition and slicing of operands are strides of their views. The identity expression is a copy.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr, Operand
from ..expr.known import Known, known
from .api import Box, Kind, check_expression


@dataclass(frozen=True)
class Map(Kind):
    expr: Expr

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(outs) != 1:
            return "a map has one result"
        return check_expression(self.expr, ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return tuple(box for _ in ins)

    def expressions(self) -> tuple[Expr, ...]:
        return (self.expr,)

    def known(self, given: Sequence[Known], ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Known, ...]:
        return (known(self.expr, given, outs[0].shape),)

    @property
    def is_copy(self) -> bool:
        return isinstance(self.expr, Operand)
