"""pool: the largest, the mean, the sum or the p-norm of the elements in a window that slides over the spatial axes.

Operands x[N,C,...], then those of the epilogue. Elements outside the image take no part; a mean divides by the number
of elements inside the image or, with `count_include_pad`, inside the padded image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, WithEpilogue
from .conv import window

ALGORITHMS = ("max", "average", "sum", "lp")


@dataclass(frozen=True)
class Pool(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    algorithm: str
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]  # before each spatial axis, then after each
    space: Shape  # spatial part of the result's shape
    accumulator: DType
    count_include_pad: bool = False
    p: int = 2
    epilogue: Expr | None = None

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if not ins or len(outs) != 1:
            return "a pool has an operand and one result"
        return (
            self.check_algorithm()
            or check_window(ins[0], self.kernel, self.strides, self.dilations, self.pads)
            or self.check_epilogue(TensorType(self.accumulator, (*ins[0].shape[:2], *self.space)), ins, outs[0])
        )

    def check_algorithm(self) -> str:
        if self.algorithm not in ALGORITHMS:
            return f"no pooling algorithm {self.algorithm!r}"
        if self.algorithm not in ("max", "sum") and not self.accumulator.is_float:
            return f"{self.algorithm} over {self.accumulator}"
        return ""

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        x = ins[0]
        space = [
            window(box[axis + 2], self.kernel[axis], stride, dilation, self.pads[axis], x[axis + 2])
            for axis, (stride, dilation) in enumerate(zip(self.strides, self.dilations, strict=True))
        ]
        return ((box[0], box[1], *space), *(box for _ in ins[1:]))


def check_window(
    x: TensorType,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
    pads: tuple[int, ...],
) -> str:
    """Why the parameters of a window do not fit the operand, or nothing."""
    rank = x.rank - 2
    if rank < 1 or {len(kernel), len(strides), len(dilations)} != {rank} or len(pads) != 2 * rank:
        return f"a window of {kernel} with strides {strides} does not fit {x}"
    return ""
