"""transfer: the same elements in another memory, of which one may be reached by nothing else.

Invariant: no other kind reads or writes a buffer that is `far`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..base.tensor import Shape, TensorType
from .api import Box, Kind


@dataclass(frozen=True)
class Transfer(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    axis: int  # of rows

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1 or ins[0] != outs[0]:
            return "it has one operand and one result of the same type"
        return "" if 0 <= self.axis < ins[0].rank else f"{ins[0]} has no axis {self.axis}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return (box,)
