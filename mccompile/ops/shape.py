"""Shape and Size: dimensions as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.dims import Dim
from ..base.dtypes import i64
from ..base.tensor import TensorType
from ..expr.ir import apply, index, literal, size
from .api import Fact, Lowering, Operator, Site
from .shapes import fact, objects


class Measure(Operator):
    """A result that says something about the shape of operand 0."""

    def dims(self, site: Site) -> tuple[Dim, ...]:
        raise NotImplementedError

    def infer(self, site: Site) -> list[Fact]:
        dims = self.dims(site)
        return [fact(TensorType(i64, (len(dims),)), objects(dims))]

    def lower(self, to: Lowering) -> None:
        dims = self.dims(to.site)
        numbers = [dim for dim in dims if isinstance(dim, int)]
        if len(numbers) == len(dims):
            to.set(0, to.constant(np.array(numbers, np.int64).reshape(to.type().static_shape)))
            return
        element = size(dims[-1])
        for place, dim in reversed(list(enumerate(dims[:-1]))):
            element = apply("select", apply("equal", index(0), literal(place, i64)), size(dim), element)
        to.set(0, to.map(element, [], to.type().shape))


@dataclass(frozen=True)
class Shape(Measure):
    name = "Shape"
    versions = (1, 13, 15, 19, 21, 23, 24, 25)
    start: int = 0
    end: int | None = None

    def dims(self, site: Site) -> tuple[Dim, ...]:
        return site.shape(0)[self.start : self.end]


@dataclass(frozen=True)
class Size(Measure):
    name = "Size"
    versions = (1, 13, 19, 21, 23, 24, 25)

    def dims(self, site: Site) -> tuple[Dim, ...]:
        return (site.type(0).count,)

    def infer(self, site: Site) -> list[Fact]:
        return [fact(TensorType(i64, ()), objects(self.dims(site)).reshape(()))]
