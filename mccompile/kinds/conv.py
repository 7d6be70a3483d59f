"""conv: convolution in any number of spatial dimensions, with groups, strides, dilations and zero padding.

Operands x[N,C,...], w[O,C/group,...], then zero points where there are any (of x: a scalar; of w: [O]), then those of
the epilogue (a bias is one: its view has stride 0 everywhere but along O). Zero points are subtracted before anything
else, so padding stands for the zero point.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim, ceil_div, maximum, minimum, product
from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.summation_error import ANY
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, WithEpilogue, whole


@dataclass(frozen=True)
class Conv(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ("x", "w")
    optional: ClassVar[tuple[str, ...]] = ("x_zero", "w_zero")
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]  # before each spatial axis, then after each
    group: int
    accumulator: DType
    epilogue: Expr | None = None
    x_zero: bool = False  # is there a zero point of x among the operands?
    w_zero: bool = False
    rounding: int = ANY  # how exactly sums are made: see base/summation_error.py
    palette: bool = False  # do weights take few values? Kernels may store indices of these then

    def out_shape(self, x: Shape, w: Shape) -> Shape:
        """The result's shape; how often the window fits."""
        space = [
            (x[axis + 2] + self.pads[axis] + self.pads[axis + len(self.strides)] - (w[axis + 2] - 1) * dilation - 1)
            // stride
            + 1
            for axis, (stride, dilation) in enumerate(zip(self.strides, self.dilations, strict=True))
        ]
        return (x[0], w[0], *space)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) < self.fixed or len(outs) != 1:
            return f"a convolution like this has at least {self.fixed} operands and one result"
        x, w = ins[:2]
        if x.rank != w.rank or x.rank != 2 + len(self.strides) or len(self.pads) != 2 * len(self.strides):
            return f"x {x}, w {w} and {len(self.strides)} strides do not fit together"
        if x.shape[1] != w.shape[1] * self.group:
            return f"x {x} has not {self.group} groups of the channels of w {w}"
        if isinstance(w.shape[0], int) and w.shape[0] % self.group:
            return f"w {w} has not {self.group} groups of results"
        zeros = [TensorType(x.dtype, ())] * self.x_zero + [TensorType(w.dtype, w.shape[:1])] * self.w_zero
        if list(ins[2 : self.fixed]) != zeros:
            return f"the zero points are {', '.join(map(str, ins[2 : self.fixed]))}, not {', '.join(map(str, zeros))}"
        return self.check_epilogue(TensorType(self.accumulator, self.out_shape(x.shape, w.shape)), ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        x, w = ins[0], ins[1]
        space = [
            window(box[axis + 2], w[axis + 2], stride, dilation, self.pads[axis], x[axis + 2])
            for axis, (stride, dilation) in enumerate(zip(self.strides, self.dilations, strict=True))
        ]
        low, high = box[1]
        channels: tuple[Dim, Dim] = 0, x[1]
        if self.group > 1 and isinstance(w[0], int):  # those of the groups that the results are in
            each, results = w[1], w[0] // self.group
            channels = low // results * each, ceil_div(high, results) * each
        zeros = [()] * self.x_zero + [(box[1],)] * self.w_zero
        return ((box[0], channels, *space), (box[1], *whole(w)[1:]), *zeros, *(box for _ in ins[self.fixed :]))

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * product(ins[1].shape[1:])


def window(out: tuple[Dim, Dim], kernel: Dim, stride: int, dilation: int, pad: int, size: Dim) -> tuple[Dim, Dim]:
    """The range of inputs that a range of outputs of a sliding window reads, inside the image."""
    low = out[0] * stride - pad
    high = (out[1] - 1) * stride - pad + (kernel - 1) * dilation + 1
    return maximum(low, 0), minimum(high, size)
