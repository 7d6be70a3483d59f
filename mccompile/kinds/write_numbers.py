"""write_numbers: every number as text. Floats have as few digits as lead back to them (see mcc_digits.h), integers all,
bools are True or False."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind
from .made_strings import check_made


@dataclass(frozen=True)
class WriteNumbers(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or ins[0].dtype.kind not in ("float", "int", "uint", "bool"):
            return "it takes numbers"
        return check_made(outs, ins[0].shape)
