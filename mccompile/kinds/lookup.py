"""lookup: every element of the result is the entry of a table that an 8-bit element of x names.

Operands x, table[256]. Entries are in the order of the bits of x: those of -128 to -1 come after those of 0 to 127.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind, whole


@dataclass(frozen=True)
class Lookup(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "table")

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 2 or len(outs) != 1:
            return "a lookup has two operands and one result"
        x, table = ins
        if not x.dtype.is_integer or x.dtype.bits != 8:
            return f"x {x} is not of 8-bit integers"
        if table.shape != (256,) or outs[0] != TensorType(table.dtype, x.shape):
            return f"the table {table} does not give {outs[0]}"
        return ""

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return (box, whole(ins[1]))
