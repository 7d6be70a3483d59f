"""select: the positions of the true elements of a vector of bools, in order, and how many there are.

Result 0 holds the positions (i64, as many as there is room for; behind the last of them nothing is written), result 1
the count of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import bool_, i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class Select(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or ins[0].dtype is not bool_ or ins[0].rank != 1:
            return "a select has one vector of bools"
        if len(outs) != 2 or outs[0].rank != 1 or (outs[0].dtype, outs[1]) != (i64, TensorType(i64, (1,))):
            return f"the results {[str(out) for out in outs]} are not positions in {ins[0]} and their count"
        return ""
