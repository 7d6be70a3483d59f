"""change_case: every string in the other case, code point by code point.

Operands: x, and the table of cases, i32 [rows, 4]: code points from the first to the last, each so many after the one
before, and what is added to them. Rows are in ascending order. What is not UTF-8 stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import i32, string
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Check, Kind
from .made_strings import check_made


@dataclass(frozen=True)
class ChangeCase(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "cases")

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 2 or ins[0].dtype is not string:
            return "it takes strings and a table"
        if ins[1].dtype is not i32 or ins[1].rank != 2 or ins[1].shape[1] != 4:
            return f"the table of cases is {ins[1]}"
        return check_made(outs, ins[0].shape)

    def checks(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> tuple[Check, ...]:
        return (Check("cases", (1,), ()),)
