"""deform_conv: convolution whose taps lie wherever an operand says, between elements, in any number of dimensions.

Operands x[N,C,...], w[O,C/group,K] for the K taps of the window, offset[N,G,K,rank,...] (how far each tap is moved
along each axis, for each of G groups of channels and each place of the result), where `masked` mask[N,G,K,...] that
taps are multiplied with, then those of the epilogue. A tap is interpolated between its neighbours; outside is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import ClassVar

from ..base.dims import Dim
from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr
from .api import Box, WithEpilogue, whole


@dataclass(frozen=True)
class DeformConv(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ("x", "w", "offset", "mask")
    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]  # before each spatial axis
    group: int
    accumulator: DType
    masked: bool = False
    epilogue: Expr | None = None

    @property
    def names(self) -> tuple[str, ...]:
        return self.roles[: 3 + self.masked]

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) < self.fixed or len(outs) != 1 or len(outs[0].shape) != 2 + len(self.kernel):
            return f"a deform_conv like this has at least {self.fixed} operands and one result"
        x, w, offset = ins[:3]
        taps, rank = prod(self.kernel), len(self.kernel)
        if x.rank != rank + 2 or w.shape[1:] != (x.shape[1] // self.group, taps):
            return f"x {x} and w {w} do not fit together"
        space = outs[0].shape[2:]
        groups = offset.shape[1] if offset.rank > 1 else 0
        if not isinstance(groups, int) or groups < 1 or x.shape[1] % groups != 0:
            return f"the offset {offset} does not fit x {x}"
        wanted = [TensorType(x.dtype, (x.shape[0], groups, taps, rank, *space))]
        wanted += [TensorType(x.dtype, (x.shape[0], groups, taps, *space))] * self.masked
        if list(ins[2 : self.fixed]) != wanted:
            return f"the offset {offset} and its mask are not {', '.join(map(str, wanted))}"
        return self.check_epilogue(TensorType(self.accumulator, (x.shape[0], w.shape[0], *space)), ins, outs[0])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        space = box[2:]
        offset = (box[0], *whole(ins[2])[1:4], *space)
        mask = [(box[0], *whole(ins[2])[1:3], *space)] * self.masked
        rest = (box for _ in ins[self.fixed :])
        return ((box[0], *whole(ins[0])[1:]), (box[1], *whole(ins[1])[1:]), offset, *mask, *rest)

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * ins[1].shape[1] * ins[1].shape[2]
