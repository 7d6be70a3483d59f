"""Winograd's minimal filtering F(m x m, 3 x 3) for m = 2 and 4: the three transforms, as matrices and as vector C.

A patch of (m + 2) x (m + 2) inputs gives m x m results: patch and weights are transformed, multiplied by element
(summed over channels: a matrix product for each), and transformed back. Invariant: the C of a transform computes
the product with its matrix, up to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...base.marked import called
from ...base.summation_error import rounded_terms
from ...expr.vector_c import half_c

# F(4x4) takes polynomials at 0, infinity and two values with both signs. The powers of 1 and 2 grow so far apart that
# errors are four times as large. Weights hold the square of the near value and the far one as factors, so that no
# product is left alone in the transform of results.
_NEAR, _FAR = 3 / 4, 3 / 2
_POINTS = {0.0: 1.0, _NEAR: _NEAR**2, -_NEAR: _NEAR**2, _FAR: _FAR, -_FAR: _FAR}  # and their factors


def _weights_of_points(points: Mapping[float, float]) -> list[list[float]]:
    """Three powers of each, over the product of its distances to the others; infinity comes last."""
    rows = []
    for point, factor in points.items():
        distances = float(np.prod([point - other for other in points if other != point]))
        rows.append([point**power * factor / distances for power in range(3)])
    return [*rows, [0.0, 0.0, 1.0]]


_WEIGHTS = {
    2: [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
    4: _weights_of_points(_POINTS),
}

# In 16 bits. Transformed inputs of F(2x2) are at most 4 times as large as inputs: these are divided by 4, results
# multiplied. Results are sums of 9 products, each of which has a third of their variance: runs a third as long leave
# the same errors.
HALF_SCALE, HALF_TERMS = 4, 3


# How far results are off, as base/summation_error.py counts it, by the transforms of each axis; and how many times as
# far as without transforms by the sums over channels, with one axis and with two. Measured.
_OWN = {2: 1.3, 4: 4.3}
_SUMS = {2: (1.8, 3.6), 4: (6.6, 34.0)}


def rounding(m: int, axes: int, terms: int, asked: int) -> float:
    return _OWN[m] ** axes + _SUMS[m][axes - 1] * rounded_terms(terms, asked)


def transformed_weights(w: np.ndarray, m: int, rows: bool = True) -> np.ndarray:
    """w[O, C, taps, 3, 3] as [(m+2)^2, O, taps * C], of the same type; w[O, C, taps, 3] as [m+2, O, taps * C] where
    rows are not transformed."""
    g, taps = np.array(_WEIGHTS[m]), w.astype(np.float64)
    u: np.ndarray = np.einsum("ai,octij,bj->abotc", g, taps, g) if rows else np.einsum("octj,bj->botc", taps, g)
    return u.astype(w.dtype).reshape(-1, w.shape[0], w.shape[1] * w.shape[2])


def input_transform(d: Sequence[str], m: int, of: str) -> list[str]:
    """C of the m + 2 transformed values of as many inputs along one axis."""
    if m == 2:
        pairs = (("sub", 0, 2), ("add", 1, 2), ("sub", 2, 1), ("sub", 1, 3))
        return [_call(name, d[a], d[b], of) for name, a, b in pairs]
    near, far = _NEAR**2, _FAR**2
    ends = [_plus(_plus(d[i + 4], near * far, d[i], of), -near - far, d[i + 2], of) for i in (0, 1)]
    inner = []
    for point, other in ((_NEAR, far), (_FAR, near)):
        even, odd = _plus(d[4], -other, d[2], of), _plus(d[3], -other, d[1], of)
        inner += [_plus(even, point, odd, of), _plus(even, -point, odd, of)]
    return [ends[0], *inner, ends[1]]


def output_transform(d: Sequence[str], m: int, of: str) -> list[str]:
    """C of the m results along one axis of m + 2 products."""
    if m == 2:
        sums, rest = _call("add", d[0], d[1], of), _call("sub", d[1], d[2], of)
        return [_call("add", sums, d[2], of), _call("sub", rest, d[3], of)]
    near, far = _call("add", d[1], d[2], of), _call("add", d[3], d[4], of)
    near_odd, far_odd = _call("sub", d[1], d[2], of), _call("sub", d[3], d[4], of)
    return [
        _plus(_plus(d[0], 1 / _NEAR**2, near, of), 1 / _FAR, far, of),
        _plus(far_odd, 1 / _NEAR, near_odd, of),
        _plus(near, _FAR, far, of),
        _plus(_plus(d[5], _NEAR, near_odd, of), _FAR**2, far_odd, of),
    ]


def scaled(vector: str, factor: float, of: str) -> str:
    """C of a vector of 16-bit floats times a power of two."""
    return called(f"mcc_mul_{of}", (vector, f"mcc_set_{of}({half_c(factor)})"))


def _call(name: str, a: str, b: str, of: str) -> str:
    return called(f"mcc_{name}_{of}", (a, b))


def _plus(a: str, factor: float, b: str, of: str) -> str:
    return called(f"mcc_fma_{of}", (f"mcc_set_{of}({np.float32(factor)!s}f)", b, a))
