"""det: determinants of square matrices x[..., M, M]; those of empty ones are 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import Dim
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Box, Kind


@dataclass(frozen=True)
class Det(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or len(outs) != 1 or ins[0].rank < 2:
            return "a det has one operand of rank 2 or more and one result"
        x = ins[0]
        if x.shape[-1] != x.shape[-2] or not x.dtype.is_float or outs[0] != TensorType(x.dtype, x.shape[:-2]):
            return f"x {x} and the result {outs[0]} do not fit together"
        return ""

    def access(self, ins: Sequence[Shape], outs: Sequence[Shape], box: Box) -> tuple[Box, ...]:
        return ((*box, (0, ins[0][-2]), (0, ins[0][-1])),)

    def macs(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> Dim:
        size = ins[0].shape[-1]
        return outs[0].count * size * size * size // 3
