"""grid_sample: x[N,C,space...] read at places that grid[N,out..., axes] gives, from -1 to 1 on each axis, last first.

Modes: nearest, linear, cubic (coefficient -0.75). Outside of x: zeros, border (its edge) or reflection; with cubic and
border the place stays where it is and the elements around it are those of the edge (as PyTorch and onnxruntime have it;
onnx's reference moves the place first). With `align_corners` -1 and 1 are the middle of the outermost elements,
otherwise their outer edge. A place that is not a number lies far outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind, whole

TAPS = {"nearest": 1, "linear": 2, "cubic": 4}
PADDINGS = ("zeros", "border", "reflection")


@dataclass(frozen=True)
class GridSample(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "grid")
    mode: str
    padding: str
    align_corners: bool

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 2 or len(outs) != 1:
            return "a grid_sample has operands x and grid and one result"
        x, grid = ins
        if self.mode not in TAPS or self.padding not in PADDINGS:
            return f"mode {self.mode} or padding {self.padding} is not known"
        if x.rank < 3 or grid.rank != x.rank or grid.shape[-1] != x.rank - 2 or grid.shape[0] != x.shape[0]:
            return f"grid {grid} does not fit x {x}"
        if not grid.dtype.is_float or (self.mode != "nearest" and not x.dtype.is_float):
            return f"places {grid.dtype} and elements {x.dtype} cannot be computed with"
        if any(dim == 0 for dim in x.shape[2:]):
            return f"x {x} is empty"
        wanted = TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:-1]))
        return "" if outs[0] == wanted else f"the result is {outs[0]} instead of {wanted}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return ((*box[:2], *whole(ins[0])[2:]), (box[0], *box[2:], (0, ins[1][-1])))

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * math.prod([TAPS[self.mode]] * (ins[0].rank - 2))
