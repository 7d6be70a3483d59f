"""cut_slots: x (outer, length, inner) cut into parts along its middle axis, one dense part in each row of the result.

Operand 1 says how many positions each part takes; what it asks for beyond the end is not there. The rest of a row is
zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class CutSlots(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "sizes")

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 2 or len(outs) != 1 or ins[0].rank != 3 or not ins[0].is_static or not ins[1].is_static:
            return "it has operands x (outer, length, inner) and sizes, and one result"
        x, sizes = ins
        if sizes.dtype is not i64 or sizes.rank != 1 or outs[0] != TensorType(x.dtype, (*sizes.shape, x.count)):
            return f"the result {outs[0]} has not a row of {x.count} for each of {sizes}"
        return ""
