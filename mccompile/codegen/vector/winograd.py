"""Winograd's minimal filtering F(m x m, 3 x 3) for m = 2 and 4: the three transforms, as matrices and as vector C.

A patch of (m + 2) x (m + 2) inputs gives m x m results: patch and weights are transformed, multiplied by element
(summed over channels: a matrix product for each), and transformed back. Invariant: the C of a transform computes
the product with its matrix, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.marked import called
from ...expr.vector_c import half_c

_WEIGHTS = {
    2: [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
    4: [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
}

# In 16 bits. Transformed inputs of F(2x2) are at most 4 times as large as inputs: these are divided by 4, results
# multiplied. Results are sums of 9 products, each of which has a third of their variance: runs a third as long leave
# the same errors.
HALF_SCALE, HALF_TERMS = 4, 3


def transformed_weights(w: np.ndarray, m: int) -> np.ndarray:
    """w[O, C, 3, 3] as [(m+2)^2, O, C], of the same type."""
    g = np.array(_WEIGHTS[m])
    u: np.ndarray = np.einsum("ai,ocij,bj->aboc", g, w.astype(np.float64), g).astype(w.dtype)
    return u.reshape(-1, *w.shape[:2])


def input_transform(d: Sequence[str], m: int, of: str) -> list[str]:
    """C of the m + 2 transformed values of as many inputs along one axis."""
    if m == 2:
        pairs = (("sub", 0, 2), ("add", 1, 2), ("sub", 2, 1), ("sub", 1, 3))
        return [_call(name, d[a], d[b], of) for name, a, b in pairs]
    even4, odd4 = _less(d[4], 4, d[2], of), _less(d[3], 4, d[1], of)
    even, odd = _call("sub", d[4], d[2], of), _call("sub", d[3], d[1], of)
    return [
        _less(_plus(d[4], 4, d[0], of), 5, d[2], of),
        _call("add", even4, odd4, of),
        _call("sub", even4, odd4, of),
        _plus(even, 2, odd, of),
        _less(even, 2, odd, of),
        _less(_plus(d[5], 4, d[1], of), 5, d[3], of),
    ]


def output_transform(d: Sequence[str], m: int, of: str) -> list[str]:
    """C of the m results along one axis of m + 2 products."""
    if m == 2:
        sums, rest = _call("add", d[0], d[1], of), _call("sub", d[1], d[2], of)
        return [_call("add", sums, d[2], of), _call("sub", rest, d[3], of)]
    sums, sums2 = _call("add", d[1], d[2], of), _call("add", d[3], d[4], of)
    rest, rest2 = _call("sub", d[1], d[2], of), _call("sub", d[3], d[4], of)
    return [
        _call("add", _call("add", d[0], sums, of), sums2, of),
        _plus(rest, 2, rest2, of),
        _plus(sums, 4, sums2, of),
        _call("add", _plus(rest, 8, rest2, of), d[5], of),
    ]


def scaled(vector: str, factor: float, of: str) -> str:
    """C of a vector of 16-bit floats times a power of two."""
    return called(f"mcc_mul_{of}", (vector, f"mcc_set_{of}({half_c(factor)})"))


def _call(name: str, a: str, b: str, of: str) -> str:
    return called(f"mcc_{name}_{of}", (a, b))


def _plus(a: str, factor: int, b: str, of: str) -> str:
    return called(f"mcc_fma_{of}", (f"mcc_set_{of}({factor}.0f)", b, a))


def _less(a: str, factor: int, b: str, of: str) -> str:
    return _plus(a, -factor, b, of)
