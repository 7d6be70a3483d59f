"""argmax_pool: the largest element of each window and where it lies.

Results y[N,C,...] and its place in x, counted as if x were dense, row-major or (`column_major`) with the spatial axes
in reverse. Of equal elements the first in row-major order counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind
from .conv import window
from .pool import check_window


@dataclass(frozen=True)
class ArgmaxPool(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]  # before each spatial axis, then after each
    space: Shape  # spatial part of the results' shape
    column_major: bool = False

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 2:
            return "an argmax pool has one operand and two results"
        shape = (*ins[0].shape[:2], *self.space)
        if tuple(outs) != (TensorType(ins[0].dtype, shape), TensorType(i64, shape)):
            return f"the results are {outs[0]} and {outs[1]}"
        return check_window(ins[0], self.kernel, self.strides, self.dilations, self.pads)

    def counts_places(self, axis: int) -> bool:
        return True  # places are those in all of x

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        space = [
            window(box[axis + 2], self.kernel[axis], stride, dilation, self.pads[axis], ins[0][axis + 2])
            for axis, (stride, dilation) in enumerate(zip(self.strides, self.dilations, strict=True))
        ]
        return ((box[0], box[1], *space),)
