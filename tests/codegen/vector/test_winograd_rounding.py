"""What is said of the errors of Winograd's method agrees with what its transforms give in 32-bit floats."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest

from mccompile.base.marked import plain
from mccompile.base.summation_error import ANY, HALF_PLACE, SHORT, short_run
from mccompile.codegen.vector.winograd import input_transform, output_transform, rounding, transformed_weights

f = np.float32
SAMPLES = 60


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    found: np.ndarray = (a.astype(np.float64) * b + c).astype(f)
    return found


# Calls of C that happen to be Python.
CALLS = {"mcc_fma_q": fma, "mcc_add_q": np.add, "mcc_sub_q": np.subtract, "mcc_set_q": f}


def along(transform: Callable[[Sequence[str], int, str], list[str]], m: int, d: np.ndarray, axis: int) -> np.ndarray:
    """What the C of a transform gives along an axis."""
    names = [f"d{number}" for number in range(m + 2)]
    values = {**CALLS, **dict(zip(names, np.moveaxis(d, axis, 0), strict=True))}
    found = [eval(plain(text).replace("f)", ")"), values) for text in transform(names, m, "q")]
    return np.stack(found, axis)


def summed(v: np.ndarray, u: np.ndarray, run: int) -> np.ndarray:
    """Sums over the last axis in runs."""
    total = np.zeros(v.shape[:-1], f)
    for first in range(0, v.shape[-1], run):
        part = np.zeros(v.shape[:-1], f)
        for channel in range(first, min(first + run, v.shape[-1])):
            part = fma(v[..., channel], u[..., channel], part)
        total = total + part
    return total


@cache
def measured(m: int, axes: int, channels: int, asked: int) -> float:
    """The mean square of what results are off by, for inputs behind an activation."""
    chance, size = np.random.default_rng(channels), m + 2
    x = np.maximum(chance.standard_normal((SAMPLES, *(size,) * axes, channels)), 0).astype(f)
    w = chance.standard_normal((channels, *(3,) * axes)).astype(f)
    u = transformed_weights(w[None, :, None], m, rows=axes == 2).reshape(*(size,) * axes, channels)
    y = x
    for axis in range(1, axes + 1):
        y = along(input_transform, m, y, axis)
    y = summed(y, u, short_run(channels) if asked >= SHORT else channels)
    for axis in range(1, axes + 1):
        y = along(output_transform, m, y, axis)
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (3,) * axes, tuple(range(1, axes + 1)))
    exact = np.einsum("n...cij,cij->n..." if axes == 2 else "n...ci,ci->n...", windows, w.astype(np.float64))
    squares = float(np.mean(x.astype(np.float64) ** 2) * np.sum(w.astype(np.float64) ** 2))
    return float(np.mean((y - exact) ** 2)) / (squares * HALF_PLACE**2)


@pytest.mark.parametrize("asked", [ANY, SHORT])
@pytest.mark.parametrize("channels", [3, 32, 128])
@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("m", [2, 4])
def test_it_agrees_with_what_transforms_give(m: int, axes: int, channels: int, asked: int) -> None:
    assert 1 / 2 < rounding(m, axes, channels, asked) / measured(m, axes, channels, asked) < 2
