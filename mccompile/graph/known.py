"""Which constants the type rules know element by element: sizes, positions, and what sizes are multiplied with.

Weights are never read for them.
"""

from __future__ import annotations

import math

import numpy as np

from ..base.constant import Constant
from ..base.dtypes import DType

_INTEGERS = 4096  # elements; shape arithmetic is far smaller
_FLOATS = 16  # elements; sizes on their way through floats


def may_be_known(dtype: DType, count: int) -> bool:
    """Are there so few elements that type rules know them?"""
    if dtype.kind == "float":
        return 0 < count <= _FLOATS
    return dtype.kind in ("int", "uint", "bool") and count <= _INTEGERS


def known_elements(constant: Constant) -> np.ndarray | None:
    """The elements of a small constant, where they are whole numbers."""
    dtype = constant.type.dtype
    known = may_be_known(dtype, math.prod(constant.type.static_shape))
    if not known or (dtype.is_float and not _is_whole(constant)):
        return None
    elements = constant.array.astype(np.int64) if dtype.is_float else constant.array
    value = np.empty(elements.shape, dtype=object)
    value[...] = elements.astype(object)
    return value


@np.errstate(invalid="ignore")
def _is_whole(constant: Constant) -> bool:
    """Are all floats whole numbers that their type holds exactly, and no negative zeros?"""
    array = constant.array.astype(np.float64)
    held = (np.abs(array) <= constant.type.dtype.whole) & (np.floor(array) == array)
    return bool((held & ~(np.signbit(array) & (array == 0))).all())
