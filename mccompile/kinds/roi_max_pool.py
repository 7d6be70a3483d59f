"""roi_max_pool: each region of interest of an image is divided into cells, and the largest element of each cell taken.

Operands x[N,C,H,W] and regions[R,5] (number of the image, of which a fraction is cut off, then x1, y1, x2, y2, both
corners inside); result [R,C,cells high, cells wide]. A cell with nothing in it, and a region of an image that does not
exist, give 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class RoiMaxPool(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "regions")
    cells: tuple[int, int]
    scale: float  # from the regions' coordinates to those of x

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 2 or len(outs) != 1:
            return "a roi_max_pool has two operands and one result"
        x, regions = ins
        if x.rank != 4 or regions.rank != 2 or regions.shape[1] != 5 or not x.dtype is regions.dtype is outs[0].dtype:
            return f"x {x}, regions {regions} and result {outs[0]} do not fit together"
        if outs[0].shape != (regions.shape[0], x.shape[1], *self.cells):
            return f"the result is {outs[0]} for x {x} and regions {regions}"
        return ""
