"""random: numbers that are drawn one after the other, in row-major order of the result, from 0 to 1 or normally
distributed, as numpy's RandomState draws them.

With a seed every run draws the same numbers. Without one a second result, of the role STREAM, says where to go on: it
is read and written. The drawn number is a double; the epilogue makes an element of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dtypes import f64, u64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr
from .api import WithEpilogue


@dataclass(frozen=True)
class Random(WithEpilogue):
    roles: ClassVar[tuple[str, ...]] = ()
    normal: bool
    seed: int | None = None
    epilogue: Expr | None = None

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if list(outs[1:]) != ([TensorType(u64, ())] if self.seed is None else []):
            return "it has one result, and without a seed a stream"
        return self.check_epilogue(TensorType(f64, outs[0].shape), ins, outs[0])

    def counts_places(self, axis: int) -> bool:
        return True  # a number follows from how many were drawn before it
