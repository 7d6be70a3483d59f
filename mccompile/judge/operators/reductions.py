"""What makes fewer elements of many along axes, and what spreads them out again."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from ..rules import Array, NodeSite, judges

Axes = tuple[int, ...]


def _log_sum_exp(x: Array, axes: Axes) -> Array:
    if 0 in (x.shape[axis] for axis in axes):
        return np.log(np.sum(np.exp(x), axes, keepdims=True))
    most = np.max(x, axes, keepdims=True)
    most = np.where(np.isfinite(most), most, 0)
    return np.log(np.sum(np.exp(x - most), axes, keepdims=True)) + most


def _mean(x: Array, axes: Axes) -> Array:
    """0 of nothing, of which the standard says nothing."""
    if 0 in (x.shape[axis] for axis in axes):
        return x.sum(axes, keepdims=True, dtype=x.dtype)
    if x.dtype.kind in "iu":  # truncated, as quotients of integers are; sums of 64 bits wrap around
        wide = np.dtype(np.int64 if x.dtype.kind == "i" else np.uint64)
        total, count = x.sum(axes, keepdims=True, dtype=wide), math.prod(x.shape[axis] for axis in axes)
        return np.where(total < 0, -(-total // wide.type(count)), total // wide.type(count)).astype(x.dtype)
    return x.mean(axes, keepdims=True)


def _extreme(x: Array, axes: Axes, largest: bool) -> Array:
    if 0 in (x.shape[axis] for axis in axes):  # "Reduction over an empty set of values yields minus infinity"
        shape = tuple(1 if axis in axes else size for axis, size in enumerate(x.shape))
        if x.dtype.kind == "f":
            return np.full(shape, -np.inf if largest else np.inf)
        if x.dtype.kind == "b":
            return np.full(shape, not largest)
        ends = np.iinfo(x.dtype)
        return np.full(shape, ends.min if largest else ends.max, x.dtype)
    return (np.max if largest else np.min)(x, axes, keepdims=True)


def _root(x: Array, axes: Axes) -> Array:
    found = np.sqrt(np.sum(x.astype(np.float64) ** 2, axes, keepdims=True))
    return np.trunc(found).astype(x.dtype) if x.dtype.kind in "iu" else found


_REDUCTIONS: dict[str, Callable[[Array, Axes], Array]] = {
    "ReduceL1": lambda x, axes: np.sum(np.abs(x), axes, keepdims=True, dtype=x.dtype),
    "ReduceL2": _root,
    "ReduceLogSum": lambda x, axes: np.log(np.sum(x, axes, keepdims=True, dtype=x.dtype)),
    "ReduceLogSumExp": _log_sum_exp,
    "ReduceMax": lambda x, axes: _extreme(x, axes, True),
    "ReduceMean": _mean,
    "ReduceMin": lambda x, axes: _extreme(x, axes, False),
    "ReduceProd": lambda x, axes: np.prod(x, axes, keepdims=True, dtype=x.dtype),
    "ReduceSum": lambda x, axes: np.sum(x, axes, keepdims=True, dtype=x.dtype),
    "ReduceSumSquare": lambda x, axes: np.sum(x * x, axes, keepdims=True, dtype=x.dtype),
}


@judges(*_REDUCTIONS)
def reduce(at: NodeSite) -> Array:
    x, axes = at[0], at.ints(1, "axes")
    if not axes and at.attr("noop_with_empty_axes", 0):
        each = tuple(range(x.ndim, x.ndim + 1))
        return _REDUCTIONS[at.node.op](x[..., None], each).reshape(x.shape)
    chosen = tuple(sorted({axis % x.ndim for axis in axes})) if axes else tuple(range(x.ndim))
    found = _REDUCTIONS[at.node.op](x, chosen)
    kept = [size for axis, size in enumerate(found.shape) if axis not in chosen]
    return found if at.attr("keepdims", 1) else found.reshape(kept)


def _along(at: NodeSite) -> tuple[Array, int]:
    """Before opset 13 all axes from one on are one."""
    x = at[0]
    if at.version >= 13:
        return x, at.attr("axis", -1)
    axis = at.attr("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    return x.reshape(int(np.prod(x.shape[:axis], dtype=np.int64)), -1), 1


def softmax(x: Array, axis: int = -1) -> Array:
    most = np.max(x, axis, keepdims=True, initial=-np.inf)
    powers = np.exp(x - most)
    return powers / np.sum(powers, axis, keepdims=True)


@judges("Softmax")
def softmax_of(at: NodeSite) -> Array:
    x, axis = _along(at)
    return softmax(x, axis).reshape(at[0].shape)


@judges("LogSoftmax")
def log_softmax(at: NodeSite) -> Array:
    x, axis = _along(at)
    return (x - _log_sum_exp(x, (axis % x.ndim,))).reshape(at[0].shape)


@judges("CumSum", "CumProd")
def cumulative(at: NodeSite) -> Array:
    x, axis = at[0], int(np.asarray(at[1]).reshape(-1)[0])
    function = np.cumsum if at.node.op == "CumSum" else np.cumprod
    neutral = 0 if at.node.op == "CumSum" else 1
    x = np.flip(x, axis) if at.attr("reverse", 0) else x
    found = function(x, axis, dtype=x.dtype)
    if at.attr("exclusive", 0) and x.shape[axis]:
        first = np.full_like(np.take(found, [0], axis), neutral)
        found = np.concatenate([first, np.take(found, np.arange(x.shape[axis] - 1), axis)], axis)
    return np.flip(found, axis) if at.attr("reverse", 0) else found
