"""What the test program tries of each function: a picture that both C and numpy make, and elements of the result."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.dtypes import DType, f32, u8
from ..expr.scalar_c import literal_c
from .api import ImageFunction
from .printing import parameters, scratch_bytes

SPREAD = 2654435761  # the upper byte of its multiples, modulo 2**32
_COMPARED = 512  # elements of a result, spread over all
_RELATIVE = 3e-5  # of floats, of the largest result


def picture(shape: Sequence[int], dtype: DType) -> np.ndarray:
    """The picture of all tests."""
    count = np.arange(int(np.prod(shape)), dtype=np.uint64)
    drawn = ((count * SPREAD & 0xFFFFFFFF) >> 24).astype(np.uint8).reshape(shape)
    return drawn if dtype is u8 else drawn.astype(np.float32) / np.float32(256)


def trial(fn: ImageFunction, prefix: str) -> dict[str, Any]:
    """What the template of the program is told of a function."""
    sizes, dtype = fn.trial(), fn.asked.dtype
    extras = fn.tried(sizes)
    shape, made = fn.shapes(sizes)
    wanted = np.ascontiguousarray(fn.reference(picture(shape, dtype), sizes, **extras))
    assert wanted.shape == made and wanted.dtype == dtype.numpy, (fn.symbol, wanted.shape, made, wanted.dtype)
    step = max(1, wanted.size // _COMPARED) | 1
    shown = wanted.reshape(-1)[::step].tolist()
    strides = {"x_stride": shape[1] * shape[2], "y_stride": made[1] * made[2]}
    values = {"y": "y", "x": "x", "scratch": "scratch", "scratch_bytes": "sizeof scratch"}
    values |= {name: str(number) for name, number in (sizes | strides).items()}
    for name, value in extras.items():
        values[name] = _argument(value, name, fn)
    given = [values[name] for name in parameters(fn)]
    arrays = {name: list(value) for name, value in extras.items() if isinstance(value, tuple)}
    return {
        "arguments": given,
        "arrays": arrays,
        "about": f"{'x'.join(map(str, shape))} -> {'x'.join(map(str, made))}",
        "x_count": int(np.prod(shape)),
        "y_count": wanted.size,
        "step": step,
        "wanted": [literal_c(value, f32) if dtype is f32 else str(value) for value in shown],
        "tolerance": literal_c(_RELATIVE * float(np.abs(wanted).max() or 1), f32),
        "bytes": scratch_bytes(fn, sizes),
        "pixels": made[0] * made[1],
    }


def _argument(value: Any, name: str, fn: ImageFunction) -> str:
    if isinstance(value, tuple):
        return f"{name}_of_{fn.symbol}"
    return literal_c(value, f32) if fn.asked.dtype is f32 and isinstance(value, float) else str(value)
