"""couple: probabilities of classes [rows, classes] made of those of pairs [rows, pairs], which contradict each other.

Pairs come in the order (0, 1), (0, 2) ... (1, 2) ...; the operand says how likely the first class of each is, neither 0
nor 1. What comes out makes the squared contradictions small (Wu, Lin and Weng, 2004, second method), found by the
iteration that libsvm has: at most 100 rounds, until no class is more than 0.005 / classes off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind

ROUNDS, OFF = 100, 0.005


@dataclass(frozen=True)
class Couple(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    classes: int

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1 or ins[0].rank != 2 or self.classes < 2:
            return "a couple has one operand of rank 2 and one result, of two classes or more"
        rows, pairs = ins[0].shape
        if pairs != self.classes * (self.classes - 1) // 2 or not ins[0].dtype.is_float:
            return f"x {ins[0]} is not one float for each pair of {self.classes} classes"
        if outs[0] != TensorType(ins[0].dtype, (rows, self.classes)):
            return f"the result {outs[0]} is not one number for each of {self.classes} classes"
        return ""

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return ((box[0], (0, ins[0][1])),)

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        return outs[0].count * self.classes * 10  # most rows settle within a few rounds
