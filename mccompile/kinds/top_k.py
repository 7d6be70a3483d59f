"""top_k: the k largest (or smallest) elements along an axis, best first, and where they lie.

Of equal ones the first comes first; NaN counts as larger than any number. Result 0 has the elements, result 1 their
positions (i64).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim, bounds
from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.known import Known, position
from .api import Box, Kind


@dataclass(frozen=True)
class TopK(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    axis: int
    k: Dim
    largest: bool = True

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 2:
            return "a top_k has one operand and two results"
        x, values, positions = ins[0], *outs
        shape = (*x.shape[: self.axis], self.k, *x.shape[self.axis + 1 :])
        if values != TensorType(x.dtype, shape) or positions != TensorType(i64, shape):
            return f"the results {values} and {positions} do not fit {x}"
        if bounds(self.k - x.shape[self.axis])[0] > 0:
            return f"{x} has no {self.k} elements along axis {self.axis}"
        return ""

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return (tuple((0, ins[0][self.axis]) if axis == self.axis else span for axis, span in enumerate(box)),)

    def known(self, given: Sequence[Known], ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Known, ...]:
        return given[0], position(ins[0].shape[self.axis])
