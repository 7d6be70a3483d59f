"""byte_norm in Python's integers, step by step as the kind defines it; each 1 / sqrt is held against that of floats."""

from __future__ import annotations

import math

import numpy as np

from mccompile.kinds.byte_norm import ByteNorm, Precision


def oracle(
    kind: ByteNorm,
    x: np.ndarray,
    zero: np.ndarray,
    epsilon: np.ndarray,
    gain: np.ndarray,
    bias: np.ndarray,
    shift: np.ndarray,
) -> np.ndarray:
    v = x.astype(np.int64) - int(zero)
    count = math.prod(x.shape[axis] for axis in kind.axes)
    sums = v.sum(kind.axes, keepdims=True) * (kind.measure == "standardize")
    spread = count * (v * v).sum(kind.axes, keepdims=True) - sums * sums
    precision = Precision(count)
    numbers = (spread.astype(object) << precision.fraction) + int(epsilon)
    roots = [inverse_root(int(number)) for number in numbers.reshape(-1)]
    root = np.array([r for r, _ in roots], object).reshape(numbers.shape)
    moved = np.array([m for _, m in roots], object).reshape(numbers.shape)
    power = np.where(spread == 0, 0, moved + precision.scale + precision.dropped)
    off = np.where(spread == 0, 0, count * v - sums).astype(object) >> precision.dropped
    normal = (off << power) * root >> 32
    assert all(-(1 << 31) <= int(n) < 1 << 31 for n in (off << power).reshape(-1)), "a number overflows"
    assert np.abs(normal).max() < 1 << 29, "a number has more bits than it should"
    found = ((normal * gain.astype(object) >> 32) + bias.astype(object)) >> int(shift)
    return np.clip(found, int(kind.target.low), int(kind.target.high)).astype(kind.target.numpy)


def inverse_root(number: int) -> tuple[int, int]:
    """1 / sqrt(number) = r * 2^(moved - 60), by Newton's steps."""
    moved, wide = 0, number
    while wide < 1 << 60:
        wide, moved = wide << 2, moved + 1
    wide >>= 31
    root = 2287104983 - (wide * 5 >> 3) + (wide >> 6)
    for _ in range(4):
        root = root * (3 * (1 << 29) - ((root * root >> 31) * wide >> 31)) >> 30
    root >>= 1
    assert abs(root * 2.0 ** (moved - 60) * math.sqrt(number) - 1) < 2**-27
    return root, moved
