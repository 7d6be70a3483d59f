"""scan_axis: running sums or products along an axis. Running backwards is a matter of views with negative strides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import DType
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind


@dataclass(frozen=True)
class ScanAxis(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    axis: int
    combine: str  # add or mul
    accumulator: DType
    exclusive: bool = False  # an element is not part of its own sum

    @property
    def grouped(self) -> tuple[int, ...]:
        return (self.axis,)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1 or ins[0] != outs[0]:
            return "it has one operand and one result of the same type"
        if not 0 <= self.axis < ins[0].rank:
            return f"axis {self.axis} is not one of {ins[0]}"
        if self.accumulator.compute_c != ins[0].dtype.compute_c:
            return f"{ins[0].dtype} is not accumulated in {self.accumulator}"
        return "" if self.combine in ("add", "mul") else f"{self.combine} is not add or mul"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return ((*box[: self.axis], (0, box[self.axis][1]), *box[self.axis + 1 :]),)
