"""reduce: elements combined along axes; the result keeps those axes with size 1.

What is combined is `element`, an expression over the first `operands` operands at each position of their shape; the
accumulated value goes through the epilogue. An empty set gives the identity of the combination.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dims import Dim, bounds, upper
from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from ..expr.known import Known, known, sums, unknown
from .api import AlongAxes, check_expression

COMBINATIONS = ("add", "mul", "max", "min", "and", "or")  # scalar functions


@dataclass(frozen=True)
class Reduce(AlongAxes):
    axes: tuple[int, ...]
    combine: str
    accumulator: DType
    element: Expr
    epilogue: Expr | None = None
    operands: int = 1  # how many operands `element` is over; those of the epilogue follow

    def expressions(self) -> tuple[Expr, ...]:
        return (self.element, *super().expressions())

    def identity(self) -> int | float:
        """What the accumulation starts from."""
        starts = {"add": 0, "mul": 1, "max": self.accumulator.low, "min": self.accumulator.high, "and": 1, "or": 0}
        return starts[self.combine]

    def out_shape(self, x: Shape) -> Shape:
        return tuple(1 if axis in self.axes else dim for axis, dim in enumerate(x))

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        reason = self.check_axes(ins, outs)
        if reason:
            return reason
        if self.combine not in COMBINATIONS:
            return f"{self.combine} does not combine elements"
        full = TensorType(self.accumulator, ins[0].shape)
        reason = check_expression(self.element, ins[: self.operands], full)
        return reason or self.check_epilogue(TensorType(self.accumulator, self.out_shape(ins[0].shape)), ins, outs[0])

    def known(self, given: Sequence[Known], ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Known, ...]:
        element = known(self.element, given[: self.operands], ins[0].shape)
        count = upper(ins[0].count)
        if self.combine == "add":
            found = sums(element, count, self.accumulator)
        elif self.combine in ("min", "max") and all(bounds(dim)[0] for dim in ins[0].shape):
            found = element
        else:
            found = unknown(self.accumulator)
        if self.epilogue is None:
            return (found,)
        return (known(self.epilogue, [found, *given[self.operands :]], outs[0].shape),)

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return 0
