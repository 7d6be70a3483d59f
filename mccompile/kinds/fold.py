"""fold: blocks[N,C,block...,counts...] added up into an image[N,C,space...], each block where a sliding window has it.

Block element k of the window at l belongs at l * stride + k * dilation - pad (before); what lies outside is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import bool_
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class Fold(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)
    space: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1:
            return "a fold has one operand and one result"
        x, y = ins[0], outs[0]
        axes = len(self.space)
        if x.rank != 2 + 2 * axes or any(len(each) != axes for each in (self.strides, self.dilations, self.before)):
            return f"{x} does not fit an image of {self.space}"
        if y != TensorType(x.dtype, (*x.shape[:2], *self.space)) or x.dtype is bool_:
            return f"{x} cannot be added up into {y}"
        return ""
