"""What kinds that make strings share: their results.

Result 0 holds the strings, result 1 the bytes that they point into (u8, as many as there is room for; what is not
needed stays unwritten), result 2 whether they did not all fit (a bool; strings that did not fit are empty).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dtypes import bool_, string, u8
from ..base.tensor import Shape, TensorType


def check_made(outs: Sequence[TensorType], shape: Shape) -> str:
    """Why these are not the results of a kind that makes strings of a shape, or nothing."""
    if len(outs) != 3 or outs[0] != TensorType(string, shape):
        return f"the results {[str(out) for out in outs]} are not strings, their bytes, and whether these are too few"
    if outs[1].dtype is not u8 or outs[1].rank != 1 or outs[2] != TensorType(bool_, ()):
        return f"the bytes are {outs[1]}, whether they are too few {outs[2]}"
    return ""
