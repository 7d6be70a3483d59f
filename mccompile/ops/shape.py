"""Shape and Size: dimensions as numbers."""

from __future__ import annotations

from ..base.dims import Dim
from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from .api import Fact, Lowering, Operator, Site
from .rules.at_run_time import numbers
from .rules.known_shapes import fact, objects


class Measure(Operator, abstract=True):
    """A result that says something about the shape of operand 0."""

    def dims(self, site: Site) -> tuple[Dim, ...]:
        raise NotImplementedError

    def infer(self, site: Site) -> list[Fact]:
        dims = self.dims(site)
        return [fact(TensorType(i64, (len(dims),)), objects(dims))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.reshape(numbers(to, self.dims(to.site)), to.type().shape))


@dataclass(frozen=True)
class Shape(Measure):
    versions = (1, 13, 15, 19, 21, 23, 24, 25)
    start: int = 0
    end: int | None = None

    def dims(self, site: Site) -> tuple[Dim, ...]:
        return site.shape(0)[self.start : self.end]


@dataclass(frozen=True)
class Size(Measure):
    versions = (1, 13, 19, 21, 23, 24, 25)

    def dims(self, site: Site) -> tuple[Dim, ...]:
        return (site.type(0).count,)

    def infer(self, site: Site) -> list[Fact]:
        return [fact(TensorType(i64, ()), objects(self.dims(site)).reshape(()))]
