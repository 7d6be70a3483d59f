"""NonZero and Unique: how large the result is depends on data, which a program without a heap cannot follow.

NonZero of elements that are known at compile time is computed here; older exporters build masks and ranges that way.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.dtypes import i64
from ..base.tensor import TensorType
from .api import Fact, Lowering, Operator, Site, Unsupported
from .shapes import fact


@dataclass(frozen=True)
class NonZero(Operator):
    name = "NonZero"
    versions = (9, 13)

    def places(self, site: Site) -> np.ndarray:
        x = site.fact(0)
        if not x.type.rank:
            raise Unsupported("NonZero of a scalar", "give the scalar a dimension")
        known = x.value
        if known is not None and all(isinstance(element, int) for element in known.reshape(-1)):
            found = np.nonzero(known.astype(np.int64))
        elif x.constant is not None:
            found = np.nonzero(x.constant.array)
        else:
            raise Unsupported(
                "how many results there are depends on data",
                "mark the elements instead of listing them: compare with 0 and use Where",
            )
        return np.array(found, np.int64)

    def infer(self, site: Site) -> list[Fact]:
        places = self.places(site)
        value = np.empty(places.shape, dtype=object)
        value[...] = places.astype(object)
        return [fact(TensorType(i64, tuple(int(n) for n in places.shape)), value)]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.constant(self.places(to.site)))


@dataclass(frozen=True)
class Unique(Operator):
    name = "Unique"
    versions = (11, 28)
    axis: int | None = None
    sorted: int = 1

    def infer(self, site: Site) -> list[Fact]:
        raise Unsupported("how many results there are depends on data", "take the operator out of the model")
