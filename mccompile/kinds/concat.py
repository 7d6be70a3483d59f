"""concat: the operands one after the other along an axis, or in turns: of n operands, number i makes positions i,
i + n, i + 2n ... of the result. `apart`: operands are made one after the other, each copied as soon as it is there.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dims import Dim, maximum, minimum
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind


@dataclass(frozen=True)
class Concat(Kind):
    axis: int
    in_turns: bool = False
    apart: bool = False

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
        if self.in_turns and any(part.shape[self.axis] != self.turns(total, n, len(ins)) for n, part in enumerate(ins)):
            return f"operands of {', '.join(str(part.shape[self.axis]) for part in ins)} cannot take turns"
        return ""

    @staticmethod
    def turns(end: Dim, number: int, operands: int) -> Dim:
        """How many positions before `end` an operand makes in its turn."""
        return (end - number + (operands - 1)) // operands

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        boxes = []
        low, high = box[self.axis]
        position: Dim = 0
        for number, shape in enumerate(ins):
            size = shape[self.axis]
            if self.in_turns:
                turns = (maximum(self.turns(bound, number, len(ins)), 0) for bound in (low, high))
                first, end = (minimum(turn, size) for turn in turns)
                boxes.append((*box[: self.axis], (first, end), *box[self.axis + 1 :]))
                continue
            inside = (minimum(maximum(low - position, 0), size), minimum(maximum(high - position, 0), size))
            boxes.append((*box[: self.axis], inside, *box[self.axis + 1 :]))
            position = position + size
        return tuple(boxes)
