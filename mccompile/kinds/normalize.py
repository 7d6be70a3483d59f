"""normalize: each group of elements (all that differ in `axes` only) brought to a common measure.

softmax       exp(x) / sum(exp(x))                 log_softmax   x - log(sum(exp(x)))
standardize   (x - mean) / sqrt(variance + epsilon)
rms           x / sqrt(mean(x * x) + epsilon)
l1, l2        x / sum(|x|), x / sqrt(sum(x * x)); 0 where that sum is 0

x is `element`, an expression over the first `operands` operands; those of the epilogue follow.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from ..base.dtypes import DType, f32, f64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr
from ..expr.known import Known, known, unknown
from .api import AlongAxes, check_expression

MEASURES = ("softmax", "log_softmax", "standardize", "rms", "l1", "l2")


@dataclass(frozen=True)
class Normalize(AlongAxes):
    axes: tuple[int, ...]
    measure: str
    accumulator: DType
    epsilon: float = 0.0
    epilogue: Expr | None = None
    element: Expr | None = None  # none: the operand itself
    operands: int = 1

    @property
    def grouped(self) -> tuple[int, ...]:
        return self.axes

    def expressions(self) -> tuple[Expr, ...]:
        return (*([self.element] if self.element else []), *super().expressions())

    def known(self, given: Sequence[Known], ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Known, ...]:
        """Shares of finite numbers are numbers."""
        found, x = unknown(self.accumulator), given[0]
        if self.element is not None:
            x = known(self.element, given[: self.operands], ins[0].shape)
        if self.measure == "softmax" and self.accumulator in (f32, f64) and not x.nan and x.low > -inf and x.high < inf:
            found = Known(0, 2, False, x.of)
        if self.epilogue is not None:
            found = known(self.epilogue, [found, *given[self.operands :]], outs[0].shape)
        return (found,)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        reason = self.check_axes(ins, outs)
        if reason:
            return reason
        if self.measure not in MEASURES:
            return f"{self.measure} is not a measure"
        if self.element is not None:
            reason = check_expression(self.element, ins[: self.operands], TensorType(self.accumulator, ins[0].shape))
            if reason:
                return reason
        elif self.operands != 1 or self.accumulator.compute_c != ins[0].dtype.compute_c:
            return f"{ins[0].dtype} is not computed in {self.accumulator}"
        return self.check_epilogue(TensorType(self.accumulator, ins[0].shape), ins, outs[0])
