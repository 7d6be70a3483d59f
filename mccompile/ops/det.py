"""Det: determinants of square matrices."""

from __future__ import annotations

import numpy as np

from ..base.records import dataclass
from ..base.tensor import TensorType
from ..kinds.det import Det as DetKind
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported


@dataclass(frozen=True)
class Det(Operator):
    no_gradient = "the derivative of a determinant is not written out"
    versions = (11, 22)

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if x.rank < 2 or x.shape[-1] != x.shape[-2] or not x.dtype.is_float:
            raise Invalid(f"x {x} is not of square matrices of floats")
        if not isinstance(x.shape[-1], int):
            raise Unsupported("the size of the matrices is known only at run time", "fix it with --dim or --shape")
        return [Fact(TensorType(x.dtype, x.shape[:-2]))]

    def lower(self, to: Lowering) -> None:
        x, type = to.input(0), to.type()
        if x.shape[-1] == 0:
            to.set(0, to.constant(np.ones((), type.dtype.numpy)).broadcast_to(type.shape))
        else:
            to.set(0, to.call(DetKind(), [x], type)[0])
