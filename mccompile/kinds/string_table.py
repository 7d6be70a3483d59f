"""string_table: constant strings, made of their bytes.

Operands: where each string ends (u32, one for every element of the result in row-major order), and the bytes of all of
them (u8). Elements of the result point into the bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import static
from ..base.dtypes import string, u8, u32
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Check, Kind


@dataclass(frozen=True)
class StringTable(Kind):
    roles: ClassVar[tuple[str, ...]] = ("ends", "bytes")

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 2 or len(outs) != 1 or outs[0].dtype is not string:
            return "it makes one tensor of strings from two operands"
        if ins[0] != TensorType(u32, (outs[0].count,)) or ins[1].dtype is not u8 or ins[1].rank != 1:
            return f"ends {ins[0]} and bytes {ins[1]} are not those of {outs[0]}"
        return ""

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        return (Check("rising", (0,), (static(ins[1].count),)),)
