"""Cases for the test matrix that the kernels of byte_softmax share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..base.dtypes import DType, i64, u8, u32
from ..base.tensor import TensorType
from ..kernels.api import Case
from ..kinds.byte_softmax import ByteSoftmax


def byte_softmax_case(
    name: str,
    shape: tuple[int, ...],
    axes: tuple[int, ...],
    x: DType,
    y: DType,
    step: float,
    scale: float = 1 / 256,
    permute: Mapping[int, tuple[int, ...]] | None = None,
) -> Case:
    shift = 61 - int(np.ceil(np.log2(1 / scale)))
    types = (TensorType(x, shape), TensorType(u32, (256,)), TensorType(i64, ()), TensorType(u8, ()), TensorType(y, ()))
    values = {
        1: np.rint(np.exp(-step * np.arange(256)) * 2.0**30).astype(np.uint32),
        2: np.array(int(2.0**shift / scale), np.int64),
        3: np.array(shift, np.uint8),
        4: np.array(int(y.low) + 3, y.numpy),
    }
    ranges = {0: (float(x.low), float(x.high))}
    return Case(name, ByteSoftmax(axes), types, (TensorType(y, shape),), permute or {}, ranges=ranges, values=values)
