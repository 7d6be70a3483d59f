"""Shape and Size: dimensions as numbers. Known at compile time unless a dimension is free."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.dims import Dim
from ..base.dtypes import i64
from ..base.tensor import TensorType
from .api import Fact, Lowering, Operator, Site, Unsupported
from .shapes import FIX_DIMENSIONS, fact, objects


class Measure(Operator):
    """A result that says something about the shape of operand 0."""

    def lower(self, to: Lowering) -> None:
        value = to.fact(0).value
        dims: list[Dim] = [] if value is None else list(value.reshape(-1))
        numbers = [dim for dim in dims if isinstance(dim, int)]
        if value is None or len(numbers) != len(dims):
            raise Unsupported(
                f"the shape {to.site.type(0)} is known only at run time and something computes with it",
                FIX_DIMENSIONS,
            )
        to.set(0, to.constant(np.array(numbers, np.int64).reshape(to.type().static_shape)))


@dataclass(frozen=True)
class Shape(Measure):
    name = "Shape"
    versions = (1, 13, 15, 19, 21, 23, 24, 25)
    start: int = 0
    end: int | None = None

    def infer(self, site: Site) -> list[Fact]:
        dims = site.shape(0)[self.start : self.end]
        return [fact(TensorType(i64, (len(dims),)), objects(dims))]


@dataclass(frozen=True)
class Size(Measure):
    name = "Size"
    versions = (1, 13, 19, 21, 23, 24, 25)

    def infer(self, site: Site) -> list[Fact]:
        return [fact(TensorType(i64, ()), objects([site.type(0).count]).reshape(()))]
