"""concat: the operands one after the other along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..base.dims import Dim, maximum, minimum
from ..base.tensor import Shape, TensorType
from .api import Box, Kind


@dataclass(frozen=True)
class Concat(Kind):
    name: ClassVar[str] = "concat"
    axis: int

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(outs) != 1 or not ins:
            return "a concat has operands and one result"
        total: Dim = 0
        for part in ins:
            total = total + part.shape[self.axis]
        for part in ins:
            around = (*part.shape[: self.axis], total, *part.shape[self.axis + 1 :])
            if around != outs[0].shape or part.dtype is not outs[0].dtype:
                return f"operand {part} does not fit result {outs[0]}"
        return ""

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        boxes = []
        low, high = box[self.axis]
        position: Dim = 0
        for shape in ins:
            size = shape[self.axis]
            inside = (minimum(maximum(low - position, 0), size), minimum(maximum(high - position, 0), size))
            boxes.append((*box[: self.axis], inside, *box[self.axis + 1 :]))
            position = position + size
        return tuple(boxes)
