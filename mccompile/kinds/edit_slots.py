"""edit_slots: x with a row put in before row `at`, or without that row; rows behind it make room or close up.

What is put in is dense and at most as large as a row; the rest of its row is zero, and so is the row that is free after
one was taken out. Where the result has no more rows than x, the last one drops out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import upper
from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class EditSlots(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "at", "piece")  # without a piece a row is taken out

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) not in (2, 3) or len(outs) != 1 or ins[1] != TensorType(i64, ()):
            return "it has operands x, at (one i64), perhaps a piece, and one result"
        x, y = ins[0], outs[0]
        if x.rank != 2 or y.rank != 2 or not x.is_static or not y.is_static or x.dtype is not y.dtype:
            return f"x {x} and the result {y} are not rows of one type"
        if x.shape[1] != y.shape[1] or 0 in (*x.shape, *y.shape) or (len(ins) == 2 and x != y):
            return f"the rows of the result {y} are not those of x {x}"
        if len(ins) == 3 and (ins[2].dtype is not x.dtype or upper(ins[2].count) > x.static_shape[1]):
            return f"{ins[2]} does not fit into a row of {x}"
        return ""
