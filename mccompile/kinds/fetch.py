"""fetch: an input whose rows a function of the program's gives, when they are wanted: from the first to the last, each
once.

Invariant: a program fetches an input by one call, which runs once in every run: never in a loop or a branch. That call
makes each row once, in order, all at once or as a stage of a chain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from ..base.tensor import Shape, TensorType
from .api import Box, Kind


@dataclass(frozen=True)
class Fetch(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    axis: int  # of rows

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1 or ins[0] != outs[0]:
            return "it has one operand and one result of the same type"
        return "" if 0 <= self.axis < ins[0].rank else f"{ins[0]} has no axis {self.axis}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return (box,)
