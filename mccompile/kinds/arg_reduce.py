"""arg_reduce: where along an axis the largest or smallest element is; the result keeps that axis with size 1.

Among equal elements the first counts, or the last. A NaN is both larger and smaller than any number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.known import Known, position
from .api import Box, Kind


@dataclass(frozen=True)
class ArgReduce(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    axis: int
    largest: bool
    last: bool = False
    only_numbers: bool = False  # no element is a NaN

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1:
            return "it has one operand and one result"
        x = ins[0]
        if not 0 <= self.axis < x.rank:
            return f"axis {self.axis} is not one of {x}"
        want = TensorType(i64, (*x.shape[: self.axis], 1, *x.shape[self.axis + 1 :]))
        return "" if outs[0] == want else f"the result is {outs[0]}, not {want}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return ((*box[: self.axis], (0, ins[0][self.axis]), *box[self.axis + 1 :]),)

    def known(self, given: Sequence[Known], ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Known, ...]:
        return (position(ins[0].shape[self.axis]),)
