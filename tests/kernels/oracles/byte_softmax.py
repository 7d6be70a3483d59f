"""byte_softmax in Python's integers."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.byte_softmax import ByteSoftmax


def oracle(
    kind: ByteSoftmax, x: np.ndarray, table: np.ndarray, factor: np.ndarray, shift: np.ndarray, zero: np.ndarray
) -> np.ndarray:
    wide = x.astype(np.int64)
    powers = table[wide.max(kind.axes, keepdims=True) - wide].astype(object)
    quotients = powers * (int(factor) // powers.sum(kind.axes, keepdims=True))
    unit = 1 << int(shift)
    info = np.iinfo(zero.dtype)
    rounded = [
        whole + (2 * rest > unit or (2 * rest == unit and whole % 2))
        for whole, rest in (divmod(int(quotient), unit) for quotient in quotients.reshape(-1))
    ]
    return np.array([min(max(n + int(zero), info.min), info.max) for n in rounded], zero.dtype).reshape(x.shape)
