"""roi_align: regions of images x[N,C,H,W], each averaged (or its largest sample taken) over a grid of bins.

Operands x, rois[R,4] (x1, y1, x2, y2), batches[R] i64 (clamped to the images there are); result [R,C,rows,columns].
A bin has `sampling` by `sampling` samples, or, where that is 0, as many as the bin is large; at most 32768 each way. A
sample is interpolated between four elements, or 0 outside of the image; the largest is taken of the four weighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind, whole


@dataclass(frozen=True)
class RoiAlign(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "rois", "batches")
    rows: int
    columns: int
    sampling: int
    scale: float
    half_pixel: bool
    largest: bool

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 3 or len(outs) != 1:
            return "a roi_align has operands x, rois and batches and one result"
        x, rois, batches = ins
        if x.rank != 4 or rois.rank != 2 or rois.shape[1] != 4 or batches != TensorType(i64, rois.shape[:1]):
            return f"rois {rois} and batches {batches} do not fit x {x}"
        if not x.dtype.is_float or rois.dtype is not x.dtype or 0 in x.shape:
            return f"x {x} and rois {rois} are not floats of one type, or there are none"
        wanted = TensorType(x.dtype, (rois.shape[0], x.shape[1], self.rows, self.columns))
        return "" if outs[0] == wanted else f"the result is {outs[0]} instead of {wanted}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        x = whole(ins[0])
        return ((x[0], box[1], *x[2:]), (box[0], (0, 4)), (box[0],))
