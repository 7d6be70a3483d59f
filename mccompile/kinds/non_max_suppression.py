"""non_max_suppression: boxes of each class, best first, without those that overlap a better one too much.

Operands: boxes [batch, box, 4], scores [batch, class, box], and three scalars: the largest number of boxes per batch
and
class (i64), the overlap beyond which a box is left out, and the score that a box must exceed (f32; without it any will
do). Results: rows of batch, class and box (i64, room for all of them), and how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import f32, i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class NonMaxSuppression(Kind):
    roles: ClassVar[tuple[str, ...]] = ("boxes", "scores", "most", "overlap", "threshold")
    centered: bool = False  # boxes are centre and size, not two corners
    thresholded: bool = True

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != (5 if self.thresholded else 4) or len(outs) != 2:
            return "it takes boxes, scores and scalars, and has two results"
        boxes, scores = ins[0], ins[1]
        if boxes.rank != 3 or scores.rank != 3 or boxes.shape != (scores.shape[0], scores.shape[2], 4):
            return f"boxes {boxes} and scores {scores} do not fit"
        if boxes.dtype is not f32 or scores.dtype is not f32:
            return "boxes and scores are not f32"
        if ins[2] != TensorType(i64, ()) or any(type != TensorType(f32, ()) for type in ins[3:]):
            return "the scalars are of another type"
        room = outs[0].shape[0] if outs[0].rank == 2 else 0
        if tuple(outs) != (TensorType(i64, (room, 3)), TensorType(i64, (1,))):
            return "the results are not i64[room,3] and a count"
        return ""
