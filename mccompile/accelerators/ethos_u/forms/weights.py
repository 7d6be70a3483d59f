"""Weights and biases of a product as TFLite has them: int8 with scales by channel, int32 in steps of products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....graph.ir import Node, Value
from .chain import Chain
from .quantities import axis_of, parameters, real_of, stored

_FINE = 1 / 32  # of a step of the result: what rounding a bias to whole products may move it by


@dataclass(frozen=True, eq=False)
class Weights:
    data: np.ndarray  # int8, channels first
    scales: np.ndarray
    bias: np.ndarray  # int32


def weights_of(node: Node, chain: Chain, result_scale: float, axis: int = 0) -> Weights | str:
    """Those of Conv, Gemm or MatMul, whose results lie along `axis` of its weights; or why there are none."""
    real = node.inputs[1]
    found = stored(real)
    if real is None or found is None or found[0].dtype != np.int8 or np.any(found[2]):
        return "its weights are no int8 constants with zero points of 0"
    data, scale, _ = found
    if scale.size > 1 and axis_of(real) != axis:
        return "its weights have scales along another axis than that of the results"
    assert node.inputs[0] is not None and node.inputs[0].producer is not None
    given = float(parameters(node.inputs[0].producer)[0])
    return scaled(np.moveaxis(data, axis, 0), scale, node.inputs[2] if len(node.inputs) > 2 else None, chain, given,
                  result_scale)  # fmt: skip


def scaled(
    data: np.ndarray, scale: np.ndarray, bias: Value | None, chain: Chain, given: float, result: float
) -> Weights | str:
    count = data.shape[0]
    if chain.gain.size not in (1, count) or chain.offset.size not in (1, count):
        return "a factor or sum behind it is not one number for each channel"
    factor = np.asarray(scale, np.float64) * chain.gain
    flips, silent = np.broadcast_to(chain.gain < 0, count), np.broadcast_to(chain.gain == 0, count)
    if np.any(data[flips] == -128):
        return "a weight of -128 would change its sign"
    shape = (count,) + (1,) * (data.ndim - 1)
    data = (data * np.where(silent, 0, np.where(flips, -1, 1)).reshape(shape)).astype(np.int8)
    factor = np.where(factor == 0, np.asarray(scale, np.float64), np.abs(factor))
    steps = np.broadcast_to(factor * given, count)
    whole = _whole(bias, chain, np.asarray(given * scale), count)
    if whole is None:
        number = real_of(bias) if bias is not None else np.zeros(1)
        if number is None or number.size not in (1, count) or number.shape[-1:] not in ((), (number.size,)):
            return "its bias is not one constant for each channel"
        exact = (number.ravel() * chain.gain + chain.offset) / steps
        if np.any(np.abs(exact) >= 2**31) or np.any(steps / 2 > result * _FINE):
            return "its bias is no whole number of products"
        whole = np.rint(exact).astype(np.int32)
    return Weights(data, np.asarray(factor, np.float32), whole)


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
