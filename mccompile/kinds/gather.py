"""gather: every element of the result is the element of x at a position that index operands say.

Axis a of x follows axis `axes[a]` of the result, or, where that is -1 - k, index operand k: a tensor of the result's
shape (a broadcast view as a rule). Negative indices count from the end. Indices outside of x are clamped to it, unless
`in_range` says that there are none. Gather, GatherElements, GatherND and nearest-neighbour resizing are all this.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim, bounds
from ..base.dtypes import i32, i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.known import Known
from .api import Box, Check, Kind, within


@dataclass(frozen=True)
class Gather(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    axes: tuple[int, ...]
    in_range: bool = False  # certainly inside, and none negative: made from shapes, or found by known_ranges

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(outs) != 1 or not ins:
            return "a gather has operands and one result"
        return check_indexed(self.axes, ins[0], outs[0], ins[1:])

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        x = tuple((0, dim) if axis < 0 else box[axis] for axis, dim in zip(self.axes, ins[0], strict=True))
        return (x, *(box for _ in ins[1:]))

    def known(self, given: Sequence[Known], ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Known, ...]:
        return (given[0],)

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        indexed = zip(self.axes, ins[0].shape, strict=True) if self.in_range else ()
        return tuple(within(-axis, 0, bounds(dim)[0] - 1) for axis, dim in indexed if axis < 0)


def check_indexed(axes: tuple[int, ...], whole: TensorType, part: TensorType, indices: Sequence[TensorType]) -> str:
    """Why elements of `part` do not each lie somewhere in `whole`, or nothing."""
    used = sorted(-1 - axis for axis in axes if axis < 0)
    if used != list(range(len(indices))) or len(axes) != whole.rank:
        return f"axes {axes} do not name each of {len(indices)} index operands once for the axes of {whole}"
    if part.dtype is not whole.dtype:
        return f"{part} and {whole} differ in element type"
    for index in indices:
        if index.shape != part.shape or index.dtype not in (i32, i64):
            return f"the indices are {index}, not i32 or i64 of the shape of {part}"
    for axis, dim in zip(axes, whole.shape, strict=True):
        if axis >= part.rank or (axis >= 0 and _less(dim, part.shape[axis])):
            return f"axis {axis} of {part} does not fit into {whole}"
        if axis < 0 and dim == 0 and part.count != 0:
            return f"an index says where on an empty axis of {whole}"
    return ""


def _less(a: Dim, b: Dim) -> bool:
    return isinstance(a, int) and isinstance(b, int) and a < b
