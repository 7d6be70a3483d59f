"""byte_softmax: exp(x) / sum(exp(x)) of quantized numbers, quantized, over each group of elements that differ in `axes`
only.

Operands: x, of 8-bit integers; table[256], exp(-d * scale of x) as a multiple of 2^-30, rounded to the nearest, for d
from 0 to 255; factor and shift, 2^(shift - 30) multiples of 1 over the scale of the result; zero, its zero point. With
e = table[largest x of the group - x]:

    zero + e * (factor / sum of e, rounded down) / 2^shift, rounded to the nearest, halves to even; saturated

That is within 2^-22 of the quotient that it stands for, but for the rounding of the table, whatever the sum is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import i8, i64, u8, u32
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Check, Kind, whole, within


@dataclass(frozen=True)
class ByteSoftmax(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "table", "factor", "shift", "zero")
    axes: tuple[int, ...]

    @property
    def grouped(self) -> tuple[int, ...]:
        return self.axes

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != len(self.roles) or len(outs) != 1:
            return f"it has the operands {', '.join(self.roles)} and one result"
        x, *numbers, zero = ins
        if x.dtype not in (i8, u8) or zero.dtype not in (i8, u8):
            return f"x {x} and the zero point {zero} are not of 8-bit integers"
        if numbers != [TensorType(u32, (256,)), TensorType(i64, ()), TensorType(u8, ())] or zero.shape:
            return f"table, factor, shift and zero point are {', '.join(map(str, ins[1:]))}"
        if any(not 0 <= axis < x.rank for axis in self.axes):
            return f"axes {self.axes} are not those of {x}"
        return "" if outs[0] == TensorType(zero.dtype, x.shape) else f"the result is {outs[0]}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        full = whole(ins[0])
        read = tuple(full[axis] if axis in self.axes else box[axis] for axis in range(len(full)))
        return (read, *(whole(shape) for shape in ins[1:]))

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        # e is at most the sum, so a quotient is at most factor / 2^shift: below 2^31
        return (Check("divisor", (1,), ()), within(2, 0, (1 << 62) - 1), within(3, 32, 60))
