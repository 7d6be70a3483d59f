"""Weights and biases of a product as TFLite has them: 8 bits with scales by channel, int32 in steps of products."""

from __future__ import annotations

import numpy as np

from ....base.records import dataclass
from ....graph.ir import Node, Value
from .chain import Chain
from .quantities import axis_of, parameters, real_of, source, stored

_FINE = 1 / 32  # of a step of the result: what rounding a bias to whole products may move it by


@dataclass(frozen=True, eq=False)
class Weights:
    data: np.ndarray  # int8, or uint8 as what they are multiplied by; channels first
    zero: int
    scales: np.ndarray
    bias: np.ndarray  # int32


def weights_of(node: Node, chain: Chain, result_scale: float, axis: int = 0) -> Weights | str:
    """Those of Conv, Gemm or MatMul, whose results lie along `axis` of its weights; or why there are none."""
    real = node.inputs[1]
    found = stored(real)
    if real is None or found is None or found[0].dtype.itemsize != 1 or np.unique(found[2]).size > 1:
        return "its weights are not constants of 8 bits with one zero point"
    data, scale = found[0] - np.ravel(found[2])[0].astype(np.int16), found[1]
    if scale.size > 1 and axis_of(real) != axis:
        return "its weights have scales along another axis than that of the results"
    assert node.inputs[0] is not None and node.inputs[0].producer is not None
    given, dtype = float(parameters(node.inputs[0].producer)[0]), source(node).type.dtype.numpy
    bias = node.inputs[2] if len(node.inputs) > 2 else None
    return scaled((np.moveaxis(data, axis, 0), scale), bias, chain, (given, result_scale), dtype)


def scaled(
    numbers: tuple[np.ndarray, np.ndarray],
    bias: Value | None,
    chain: Chain,
    scales: tuple[float, float],
    dtype: np.dtype,
) -> Weights | str:
    """`numbers`: less their zero point, and their scales; `scales`: of operand and result; `dtype`: of both."""
    (data, scale), (given, result) = numbers, scales
    count = data.shape[0]
    if chain.gain.size not in (1, count) or chain.offset.size not in (1, count):
        return "a factor or sum behind it is not one number for each channel"
    factor = np.asarray(scale, np.float64) * chain.gain
    flips, silent = np.broadcast_to(chain.gain < 0, count), np.broadcast_to(chain.gain == 0, count)
    shape = (count,) + (1,) * (data.ndim - 1)
    data = (data * np.where(silent, 0, np.where(flips, -1, 1)).reshape(shape)).astype(np.int16)
    zero = _zero(data, dtype)
    if zero is None:
        return f"its weights are not {dtype} if their zero point is that of Vela"
    factor = np.where(factor == 0, np.asarray(scale, np.float64), np.abs(factor))
    steps = np.broadcast_to(factor * given, count)
    whole = _whole(bias, chain, np.asarray(given * scale), count)
    if whole is None:
        number = real_of(bias) if bias is not None else np.zeros(1)
        if number is None or number.size not in (1, count) or number.shape[-1:] not in ((), (number.size,)):
            return "its bias is not one constant for each channel"
        exact = (number.ravel() * chain.gain + chain.offset) / steps
        if np.any(np.abs(exact) >= 2**31) or np.any(steps / 2 > result * _FINE):
            return "its bias is not a whole number of products"
        whole = np.rint(exact).astype(np.int32)
    return Weights((data + zero).astype(dtype), zero, np.asarray(factor, np.float32), whole)


def _zero(data: np.ndarray, dtype: np.dtype) -> int | None:
    """A zero point with which weights fit: 0 of signed ones, as TFLite asks."""
    if dtype.kind == "i":
        return 0 if data.size == 0 or (data.min() >= -128 and data.max() <= 127) else None
    low, high = -int(data.min(initial=0)), 255 - int(data.max(initial=0))
    return min(max(128, low), high) if low <= high else None


def _whole(bias: Value | None, chain: Chain, steps: np.ndarray, count: int) -> np.ndarray | None:
    """A bias that is stored in steps of the products already."""
    if not np.all(chain.offset == 0):
        return None
    if bias is None:
        return np.zeros(count, np.int32)
    found = stored(bias)
    if found is None or np.any(chain.gain != 1) or found[0].dtype != np.int32 or np.any(found[2]):
        return None
    data, scale = found[:2]
    if data.size not in (1, count) or data.shape[-1:] not in ((), (data.size,)):
        return None
    if not np.allclose(scale, steps, rtol=1e-5, atol=0):
        return None
    return np.ascontiguousarray(np.broadcast_to(data.ravel(), count))
