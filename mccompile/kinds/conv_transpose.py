"""conv_transpose: the transposed convolution, as sums gathered for each result.

Operands x[N,C,...], w[C,O/group,...], then the zero point of x if it has one (a scalar, subtracted from every x), then
those of the epilogue. Result position o is the sum over all taps t and
inputs i with i * stride + t * dilation - pad = o; positions that no tap reaches are zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim, ceil_div, maximum, minimum, product
from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, WithEpilogue, whole


@dataclass(frozen=True)
class ConvTranspose(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ("x", "w")
    optional: ClassVar[tuple[str, ...]] = ("x_zero",)
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]  # cut off before each spatial axis
    space: Shape  # spatial part of the result's shape
    group: int
    accumulator: DType
    epilogue: Expr | None = None
    x_zero: bool = False  # is there a zero point of x among the operands?

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) < self.fixed or len(outs) != 1:
            return f"a transposed convolution like this has at least {self.fixed} operands and one result"
        x, w = ins[:2]
        if self.x_zero and ins[2] != TensorType(x.dtype, ()):
            return f"the zero point of x {x} is {ins[2]}"
        if x.rank != w.rank or x.rank != 2 + len(self.strides) or len(self.pads) != len(self.strides):
            return f"x {x}, w {w} and {len(self.strides)} strides do not fit together"
        if x.shape[1] != w.shape[0] or (isinstance(w.shape[0], int) and w.shape[0] % self.group):
            return f"x {x} and w {w} do not fit in {self.group} groups"
        element = TensorType(self.accumulator, (x.shape[0], w.shape[1] * self.group, *self.space))
        return self.check_epilogue(element, ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        x, w = ins[:2]
        space: list[tuple[Dim, Dim]] = []
        for axis, (stride, dilation) in enumerate(zip(self.strides, self.dilations, strict=True)):
            low, high = box[axis + 2]
            first = low + self.pads[axis] - (w[axis + 2] - 1) * dilation
            last = (high - 1 + self.pads[axis]) // stride
            space.append((maximum((first + (stride - 1)) // stride, 0), minimum(last + 1, x[axis + 2])))
        zero = [()] * self.x_zero
        low, high = box[1]
        channels: tuple[Dim, Dim] = 0, x[1]
        if self.group > 1 and isinstance(w[1], int):  # those of the groups that the results are in
            each = x[1] // self.group
            channels = low // w[1] * each, ceil_div(high, w[1]) * each
        return ((box[0], channels, *space), whole(w), *zero, *(box for _ in ins[self.fixed :]))

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return ins[0].count * product(ins[1].shape[1:])
