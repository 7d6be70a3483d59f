"""BitCast: the bits of every element, read as another type of the same size."""

from __future__ import annotations

from dataclasses import replace

from ..base.dtypes import bool_
from ..base.records import dataclass
from ..kinds.reinterpret import Reinterpret
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported
from .quantize import named_dtype


@dataclass(frozen=True)
class BitCast(Operator):
    no_gradient = "bits seen as another type have no gradient"
    versions = (26,)
    to: int

    def infer(self, site: Site) -> list[Fact]:
        x, target = site.type(0), named_dtype(self.to, "to")
        if target.bits != x.dtype.bits:
            raise Invalid(f"an element of {x.dtype} does not have as many bits as one of {target}")
        if target.is_packed or (target is bool_ and x.dtype is not bool_):
            raise Unsupported(f"bits of {x.dtype} read as {target}", "use Cast, if that is what is meant")
        return [Fact(replace(x, dtype=target))]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        same = x.buffer.dtype is to.type().dtype
        to.set(0, x if same else to.call(Reinterpret(), [x], to.type())[0])
