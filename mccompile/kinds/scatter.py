"""scatter: x with some elements replaced by updates, or combined with them, at positions that index operands say.

Axis a of x follows axis `axes[a]` of the updates, or, where that is -1 - k, index operand k: a tensor of the updates'
shape (a broadcast view as a rule). Negative indices count from the end; indices outside of x are clamped to it. Updates
apply in row-major order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr
from .api import Kind, check_expression
from .gather import check_indexed


@dataclass(frozen=True)
class Scatter(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "updates")
    axes: tuple[int, ...]
    reduction: Expr | None = None  # of the element so far (operand 0) and the update (operand 1); none: the update

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(outs) != 1 or len(ins) < 2:
            return "a scatter has operands x, updates, indices and one result"
        if outs[0] != ins[0]:
            return f"the result {outs[0]} is not like x {ins[0]}"
        if self.reduction is not None:
            element = TensorType(ins[0].dtype, ())
            reason = check_expression(self.reduction, [element, element], element)
            if reason:
                return reason
        return check_indexed(self.axes, ins[0], ins[1], ins[2:])

    def expressions(self) -> tuple[Expr, ...]:
        return (self.reduction,) if self.reduction else ()
