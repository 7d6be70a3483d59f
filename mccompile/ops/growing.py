"""What a state that grows does (see passes/memory/growing_states.py): it lies in a buffer with room for the most, and
what a run adds is written behind what is there. ONNX has neither of these."""

from __future__ import annotations

from functools import reduce

from ..base.dims import Dim, upper
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import apply, index, size
from ..kinds.scatter import Scatter
from .api import Fact, Invalid, Lowering, OwnOperator, Site


@dataclass(frozen=True)
class UsedPart(OwnOperator):
    """The first `used` elements of an axis: a view."""

    axis: int
    used: Dim

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if upper(self.used) > upper(x.shape[self.axis]):
            raise Invalid(f"{self.used} elements are not part of axis {self.axis} of {x}")
        return [Fact(TensorType(x.dtype, (*x.shape[: self.axis], self.used, *x.shape[self.axis + 1 :])))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.input(0).sliced(self.axis, 0, self.used))


@dataclass(frozen=True)
class PutBehind(OwnOperator):
    """A buffer, operand 0, with the other operands written one behind the other from element `used` of an axis on."""

    axis: int
    used: Dim

    def infer(self, site: Site) -> list[Fact]:
        x, parts = site.type(0), [site.type(i) for i in range(1, len(site.facts))]
        end = reduce(lambda total, part: total + part.shape[self.axis], parts, self.used)
        if upper(end) > upper(x.shape[self.axis]):
            raise Invalid(f"{end} elements do not fit into axis {self.axis} of {x}")
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        x, start, axis = to.input(0), self.used, self.axis
        kind = Scatter(tuple(-1 if a == axis else a for a in range(len(x.shape))))
        for part in to.inputs()[1:]:
            shape = tuple(dim if a == axis else 1 for a, dim in enumerate(part.shape))
            rows = to.map(apply("add", size(start), index(axis)), [], shape)
            x = to.call(kind, [x, part, rows.broadcast_to(part.shape)], to.type())[0]
            start = start + part.shape[axis]
        to.set(0, x)
