"""read_numbers: every text as a number, correctly rounded. Result 1 (a bool) says whether some text is none, or
one that an integer type does not hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import bool_, string
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Kind


@dataclass(frozen=True)
class ReadNumbers(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x",)

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 1 or ins[0].dtype is not string or len(outs) != 2:
            return "it reads one tensor of strings"
        if outs[0].shape != ins[0].shape or outs[0].dtype.kind not in ("float", "int", "uint"):
            return f"it cannot make {outs[0]} of {ins[0]}"
        return "" if outs[1] == TensorType(bool_, ()) else f"whether there is a wrong text is {outs[1]}"
