"""lrn: x / (bias + alpha / size * sum of squares over `size` neighbouring channels) ^ beta; x is [N, C, ...]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..base.dims import Dim, maximum, minimum
from ..base.tensor import Shape, TensorType
from .api import Box, Kind


@dataclass(frozen=True)
class Lrn(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    size: int
    alpha: float
    beta: float
    bias: float

    @property
    def before(self) -> int:
        return (self.size - 1) // 2

    @property
    def after(self) -> int:
        return self.size // 2

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1 or ins[0] != outs[0]:
            return "it has one operand and one result of the same type"
        if ins[0].rank < 2 or not ins[0].dtype.is_float:
            return f"{ins[0]} has no channels of floats"
        return "" if self.size > 0 else "the size must be positive"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        low, high = box[1]
        return ((box[0], (maximum(low - self.before, 0), minimum(high + self.after, ins[0][1])), *box[2:]),)

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * self.size
