"""Constant weights behind a DequantizeLinear, as rules of lower_qdq see them."""

from __future__ import annotations

import numpy as np

from ....graph.ir import Value
from ...pattern import Maker, Match
from ...quantized.quantized_tensors import scheme

Ranges = list[tuple[int, int]]


class Weights:
    """Constant weights as a matrix [channels, everything else] of integers, their zero points subtracted. `axis` is
    that of the channels, which there are for each of `groups` of a transposed convolution."""

    def __init__(self, match: Match, axis: int, groups: int = 1) -> None:
        value, found = match["w"], scheme(match.node("w"))
        self.usable = value.constant is not None and found is not None and found.dtype.bits <= 8
        if not self.usable or value.constant is None or found is None:
            return
        self.usable = found.axis in (None, axis)
        array = value.constant.array
        self.array = array.astype(np.int8 if found.dtype.kind == "int" else np.uint8)
        each, self.channels = array.shape[axis], array.shape[axis] * groups
        self.scales = found.scales * (self.channels if found.axis is None else groups)
        self.zeros = np.array(found.zeros * (self.channels if found.axis is None else groups), np.int64)
        parts = array.astype(np.int64).reshape(groups, -1, *array.shape[1:]) if axis else array.astype(np.int64)[None]
        rows = np.moveaxis(parts, axis + 1, 1).reshape(groups * each, -1)
        self.rows = rows - self.zeros[:, None] if self.usable else rows

    def sums(self) -> list[int]:
        return [int(number) for number in self.rows.sum(1)]

    def ranges(self, low: int, high: int) -> Ranges:
        """Of sums of products with numbers from low to high, where some may be left out if that includes 0."""
        above, below = np.maximum(self.rows, 0).sum(1), np.minimum(self.rows, 0).sum(1)
        least, most = above * low + below * high, above * high + below * low
        return [(int(a), int(b)) for a, b in zip(least, most, strict=True)]

    def zero_operand(self, match: Match, make: Maker) -> Value | None:
        if self.zeros.any():
            return make.constant(self.zeros.astype(self.array.dtype), f"{match['w'].name}/zero")
        if match.get("w_zero") is not None:
            make.used(f"every element of {match['w_zero'].name} is 0")
        return None

    def without_zeros(self, match: Match, make: Maker) -> np.ndarray | None:
        """The weights less their zero points along axis 1, if 8 bits hold them."""
        if not self.zeros.any():
            self.zero_operand(match, make)
            return self.array
        zeros = self.zeros[: self.array.shape[1]].reshape(1, -1, *[1] * (self.array.ndim - 2))
        wide = self.array.astype(np.int64) - zeros
        if wide.min() < -128 or wide.max() > 127:
            return None
        make.used(f"{match['w'].name} less its zero points fits 8 bits")
        return wide.astype(np.int8)
