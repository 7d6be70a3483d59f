"""The elements of a buffer that a view reaches.

Trials of plans ask for the same views of many copies of a program, so what numbers alone decide is worked out once.
"""

from __future__ import annotations

from functools import lru_cache

from ..base.dims import Dim, bounds, has_dependent_terms, static, upper
from ..base.tensor import Shape

NOTHING = (0, -1)


def reached(shape: Shape, strides: Shape, offset: Dim, count: Dim) -> tuple[int, int] | None:
    """The first and the last element in any trip of a loop that the offset counts with, of a buffer of `count`; None
    where shape or strides are not known, `NOTHING` where there are no elements."""
    if isinstance(offset, int):
        return _reached(shape, strides, offset)
    around = _reached(shape, strides, 0)
    if around is None or around == NOTHING:
        return around
    least, most = bounds(offset)
    low, high = least + around[0], most + around[1]
    if has_dependent_terms(offset):  # not all that their bounds allow is reached
        low, high = max(low, 0), min(high, upper(count) - 1)
    return low, high


@lru_cache(1 << 13)
def _reached(shape: Shape, strides: Shape, offset: int) -> tuple[int, int] | None:
    if not all(isinstance(dim, int) for dim in (*shape, *strides)):
        return None
    if 0 in shape:
        return NOTHING
    reaches = [(static(dim) - 1) * static(stride) for dim, stride in zip(shape, strides, strict=True)]
    return offset + sum(reach for reach in reaches if reach < 0), offset + sum(reach for reach in reaches if reach > 0)
