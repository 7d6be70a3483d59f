"""Fixed-point products and rounding at the ends of their ranges; expected values come from Python's integers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Runtime = Callable[..., np.ndarray]

TERMS = [-(1 << 31), -(1 << 31) + 1, -65537, -3, -1, 0, 1, 2, 65535, (1 << 31) - 1]
MULTIPLIERS = [0, 1, (1 << 31) + 5, (1 << 32) - 1, 1 << 32, (1 << 62) + 12345, (1 << 63) - 1]


def test_products_keep_all_bits_above_the_point(runtime: Runtime) -> None:
    pairs = [(t, m) for t in TERMS for m in MULTIPLIERS]
    terms = np.array([t for t, _ in pairs], np.int32)
    found = runtime("fixed_product", terms, np.array([m for _, m in pairs], np.int64), np.int64)
    assert found.tolist() == [t * m >> 32 for t, m in pairs]


def test_a_rest_near_zero_is_a_half_where_halves_occur(runtime: Runtime) -> None:
    sums = [
        (whole << bits) + rest for whole in (-4, -3, -1, 0, 1, 2, 7) for bits in (8, 40) for rest in (0, 1, 3, 4, 200)
    ]
    bits = [bits for _ in (-4, -3, -1, 0, 1, 2, 7) for bits in (8, 40) for _ in range(5)]
    want = [total >> b for total, b in zip(sums, bits, strict=True)]
    found = runtime("fixed_round", np.array(sums, np.int64), np.array(bits, np.uint8), np.int32)
    assert found.tolist() == want
    even = [w - (w & 1) if total - (w << b) <= 3 else w for total, b, w in zip(sums, bits, want, strict=True)]
    found = runtime("fixed_round", np.array(sums, np.int64), np.array(bits, np.uint8) + np.uint8(64), np.int32)
    assert found.tolist() == even
