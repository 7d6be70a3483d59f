"""bottleneck: three convolutions in one. The first one (1x1) makes many channels, the second one slides over each of
them alone, the third one (1x1) makes few again.

Operands are x, then what each convolution has besides the picture it reads: weights, zero points where there are any,
and those of its epilogue. `counts` says how many these are of the first and of the second one. The wide pictures
between them never exist: the result is made `rows` rows at a time, for which the first convolution makes the rows under
the windows, so rows that lie under several such windows are computed several times. `macs` counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from ..base.dims import Dim, product, static
from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, Kind
from .conv import Conv

Operand = TypeVar("Operand")


@dataclass(frozen=True)
class Bottleneck(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    widen: Conv
    slide: Conv
    narrow: Conv
    counts: tuple[int, int]
    rows: int = 1

    @property
    def fixed(self) -> int:
        """How many operands come before those of the last epilogue."""
        return sum(self.counts) + self.narrow.fixed

    def parts(self, ins: Sequence[Operand]) -> tuple[Sequence[Operand], ...]:
        """The operands of each convolution, without the picture."""
        first, second = 1 + self.counts[0], 1 + sum(self.counts)
        return ins[1:first], ins[first:second], ins[second:]

    def between(self, ins: Sequence[TensorType]) -> tuple[TensorType, TensorType]:
        """What the first convolution makes, and the second one."""
        first, second, _ = self.parts(ins)
        wide = TensorType(_made(self.widen), self.widen.out_shape(ins[0].shape, first[0].shape))
        return wide, TensorType(_made(self.slide), self.slide.out_shape(wide.shape, second[0].shape))

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(self.counts) != 2 or min(self.counts) < 1 or len(ins) < 2 + sum(self.counts) or self.rows < 1:
            return "a bottleneck has weights of three convolutions"
        if ins[0].rank != 4 or any(part[0].rank != 4 for part in self.parts(ins)):
            return "a bottleneck is one of pictures"
        for kind in (self.widen, self.narrow):
            if kind.group != 1 or set(kind.strides) != {1} or set(kind.pads) != {0}:
                return "the first and the third convolution of a bottleneck take every point alone"
        first, second, third = self.parts(ins)
        if first[0].shape[2:] != (1, 1) or third[0].shape[2:] != (1, 1):
            return "the first and the third convolution of a bottleneck are 1x1"
        if self.slide.group != first[0].shape[0] or second[0].shape[0] != self.slide.group:
            return "the second convolution of a bottleneck takes every channel alone"
        if set(self.slide.dilations) != {1}:
            return "the windows of a bottleneck have no gaps"
        wide, narrow = self.between(ins)
        return (
            self.widen.check([ins[0], *first], [wide])
            or self.slide.check([wide, *second], [narrow])
            or self.narrow.check([narrow, *third], outs)
        )

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        first, second, third = self.parts(ins)
        wide = self.widen.out_shape(ins[0], first[0])
        slid = self.slide.out_shape(wide, second[0])
        behind = self.narrow.access([slid, *third], outs, box)
        between = self.slide.access([wide, *second], [slid], behind[0])
        before = self.widen.access([ins[0], *first], [wide], between[0])
        return (*before, *between[1:], *behind[1:])

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        first, second, third = self.parts(ins)
        wide, slid = self.between(ins)
        height, out, kernel = static(wide.shape[2]), static(slid.shape[2]), static(second[0].shape[2])
        rows = rows_made(self.slide.strides[0], self.slide.pads[0], kernel, height, out, self.rows)
        batch, _, _, columns = wide.shape
        widened = batch * rows * columns * product(first[0].shape)
        return widened + slid.count * product(second[0].shape[1:]) + outs[0].count * product(third[0].shape[1:])

    def expressions(self) -> tuple[Expr, ...]:
        return tuple(expr for kind in (self.widen, self.slide, self.narrow) for expr in kind.expressions())


def _made(kind: Conv) -> DType:
    return kind.epilogue.dtype if kind.epilogue else kind.accumulator


def rows_made(stride: int, pad: int, kernel: int, height: int, out: int, rows: int) -> int:
    """How many rows of `height` the first convolution makes, with those that it makes again."""
    found = 0
    for first in range(0, out, rows):
        low = first * stride - pad
        high = (min(first + rows, out) - 1) * stride - pad + kernel
        found += max(0, min(high, height) - max(low, 0))
    return found
