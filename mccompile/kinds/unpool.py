"""unpool: elements go to the places that an argmax_pool has noted; all others are zero.

Operands x[N,C,...] and places (of the same shape, counted over a dense row-major tensor of shape `inner`, which lies at
the beginning of the result along each axis). A place outside of `inner` is not written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base.dims import bounds
from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from .api import Kind


@dataclass(frozen=True)
class Unpool(Kind):
    roles: ClassVar[tuple[str, ...]] = ("x", "places")
    inner: Shape
    shape: Shape  # of the result

    def check(self, ins: Sequence[TensorType], outs: Sequence[TensorType]) -> str:
        if len(ins) != 2 or len(outs) != 1:
            return "an unpool has two operands and one result"
        x, places = ins
        if places != TensorType(i64, x.shape) or outs[0] != TensorType(x.dtype, self.shape):
            return f"x {x}, places {places} and result {outs[0]} do not fit together"
        sizes = zip(self.inner, self.shape, strict=False)
        if len(self.inner) != len(self.shape) or any(bounds(b - a)[1] < 0 for a, b in sizes):
            return f"{self.inner} does not fit into the result {outs[0]}"
        return ""
