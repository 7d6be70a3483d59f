"""Winograd's minimal filtering F(m x m, 3 x 3) for m = 2 and 4: the three transforms, as matrices and as vector C.

A patch of (m + 2) x (m + 2) inputs gives m x m results: patch and weights are transformed, multiplied by element
(summed over channels: a matrix product for each), and transformed back. Invariant: the C of a transform computes
the product with its matrix, up to rounding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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


def transformed_weights(w: np.ndarray, m: int) -> np.ndarray:
    """w[O, C, 3, 3] as [(m+2)^2, O, C]."""
    g = np.array(_WEIGHTS[m])
    u: np.ndarray = np.einsum("ai,ocij,bj->aboc", g, w.astype(np.float64), g).astype(np.float32)
    return u.reshape(-1, *w.shape[:2])


def input_transform(d: Sequence[str], m: int, of: str) -> list[str]:
    """C of the m + 2 transformed values of as many inputs along one axis."""
    if m == 2:
        return [f"{d[0]} - {d[2]}", f"{d[1]} + {d[2]}", f"{d[2]} - {d[1]}", f"{d[1]} - {d[3]}"]
    even4, odd4 = _less(d[4], 4, d[2], of), _less(d[3], 4, d[1], of)
    even, odd = f"({d[4]} - {d[2]})", f"({d[3]} - {d[1]})"
    return [
        _less(_plus(d[4], 4, d[0], of), 5, d[2], of),
        f"{even4} + {odd4}",
        f"{even4} - {odd4}",
        _plus(even, 2, odd, of),
        _less(even, 2, odd, of),
        _less(_plus(d[5], 4, d[1], of), 5, d[3], of),
    ]


def output_transform(d: Sequence[str], m: int, of: str) -> list[str]:
    """C of the m results along one axis of m + 2 products."""
    if m == 2:
        return [f"{d[0]} + {d[1]} + {d[2]}", f"{d[1]} - {d[2]} - {d[3]}"]
    sums, differences = [f"({d[1]} + {d[2]})", f"({d[3]} + {d[4]})"], [f"({d[1]} - {d[2]})", f"({d[3]} - {d[4]})"]
    return [
        f"{d[0]} + {sums[0]} + {sums[1]}",
        _plus(differences[0], 2, differences[1], of),
        _plus(sums[0], 4, sums[1], of),
        f"{_plus(differences[0], 8, differences[1], of)} + {d[5]}",
    ]


def _plus(a: str, factor: int, b: str, of: str) -> str:
    return f"mcc_fma_{of}(mcc_set_{of}({factor}.0f), {b}, {a})"


def _less(a: str, factor: int, b: str, of: str) -> str:
    return f"mcc_fma_{of}(mcc_set_{of}(-{factor}.0f), {b}, {a})"
