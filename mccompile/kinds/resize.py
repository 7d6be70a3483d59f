"""resize: an element of the result is a weighted sum of `taps` elements of x along each resized axis.

Several axes multiply out. Operands: x, then for each of `axes` a table of positions i32[size, taps] and one of weights
[size, taps] in the accumulator's type, then those of the epilogue. Tables follow from shapes and attributes, and their
positions lie inside of x.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim, bounds
from ..base.dtypes import DType, i32
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, Check, WithEpilogue, within


@dataclass(frozen=True)
class Resize(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    axes: tuple[int, ...]  # ascending
    taps: tuple[int, ...]
    accumulator: DType
    epilogue: Expr | None = None

    @property
    def fixed(self) -> int:
        return 1 + 2 * len(self.axes)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(outs) != 1 or len(ins) < self.fixed or not self.axes or len(self.taps) != len(self.axes):
            return "a resize has operand x, two tables for each axis and one result"
        x = ins[0]
        shape = list(x.shape)
        for number, (axis, taps) in enumerate(zip(self.axes, self.taps, strict=True)):
            if not 0 <= axis < x.rank:
                return f"{x} has no axis {axis}"
            positions, weights = ins[1 + 2 * number : 3 + 2 * number]
            shape[axis] = positions.shape[0]
            table = (shape[axis], taps)
            if positions != TensorType(i32, table) or weights != TensorType(self.accumulator, table):
                return f"the tables of axis {axis} are {positions} and {weights}"
        return self.check_epilogue(TensorType(self.accumulator, tuple(shape)), ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        x = tuple((0, dim) if axis in self.axes else box[axis] for axis, dim in enumerate(ins[0]))
        tables = [(box[axis], (0, taps)) for axis, taps in zip(self.axes, self.taps, strict=True) for _ in range(2)]
        return (x, *tables, *(box for _ in ins[self.fixed :]))

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        lengths = (bounds(ins[0].shape[axis])[0] for axis in self.axes)
        return tuple(within(1 + 2 * number, 0, length - 1) for number, length in enumerate(lengths))

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * math.prod(self.taps)
