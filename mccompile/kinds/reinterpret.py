"""reinterpret: the bits of every element, read as an element of another type of the same size."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind


@dataclass(frozen=True)
class Reinterpret(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1:
            return "it has one operand and one result"
        fits = ins[0].shape == outs[0].shape and ins[0].dtype.bits == outs[0].dtype.bits
        return "" if fits else f"the result {outs[0]} has not the elements of {ins[0]}"

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return (box,)
