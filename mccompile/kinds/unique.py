"""unique: which rows of a matrix differ from all others, and what becomes of the rest.

Operand 0 is a matrix. Results, i64, with room for as many as there are rows: the first row of each distinct one, how
often it occurs, and for every row which distinct one it is; then how many there are. Distinct rows come in ascending
order (by their first element that differs; NaN above all, and equal to itself), or in that of their first appearance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class Unique(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    ascending: bool = True

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or ins[0].rank != 2:
            return "it takes one matrix"
        each = TensorType(i64, ins[0].shape[:1])
        if tuple(outs) != (each, each, each, TensorType(i64, (1,))):
            return f"the results are not three times {each} and a count"
        return ""
