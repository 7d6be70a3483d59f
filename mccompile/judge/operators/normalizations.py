"""What brings elements to a mean and a variance, or to a norm.

The elements are rounded once more, apart from those that mean and norm are taken of: slopes of the two cancel, and
float32 leaves as much of them as it does of elements that are large beside their deviation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges

EPSILON = float(np.float32(1e-5))


def standardized(at: NodeSite, x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array, Array]:
    """With the mean, and one over the standard deviation."""
    mean = at.rounded(x.mean(axes, keepdims=True))
    inverse = 1 / np.sqrt(variance_of(at, x, mean, axes) + epsilon)
    return (at.rounded(x) - mean) * inverse, mean, inverse


def variance_of(at: NodeSite, x: Array, mean: Array, axes: tuple[int, ...]) -> Array:
    """A backward pass takes differences from the mean to add up to 0, where rounding leaves a unit of the mean each:
    the variance has a slope along what moves all elements."""
    return np.asarray(((x - mean) ** 2).mean(axes, keepdims=True) + at.drift(mean**2))


def root_mean_square(at: NodeSite, x: Array, axes: tuple[int, ...], epsilon: float) -> tuple[Array, Array]:
    inverse = 1 / np.sqrt((x**2).mean(axes, keepdims=True) + epsilon)
    return at.rounded(x) * inverse, inverse


def per_channel(values: Array, rank: int) -> Array:
    return values.reshape(1, -1, *[1] * (rank - 2))


@judges("BatchNormalization")
def batch_normalization(at: NodeSite) -> Any:
    x = at[0]
    if at.version < 9 and not at.attr("spatial", 1):
        raise NoWitness("BatchNormalization of each position")
    epsilon, momentum = at.attr("epsilon", EPSILON), at.attr("momentum", float(np.float32(0.9)))
    scale, bias, mean, variance = (at[n] for n in range(1, 5))
    training = at.attr("training_mode", 0) or (at.version < 7 and not at.attr("is_test", 0))
    if training and at.version < 14:
        raise NoWitness("BatchNormalization that trains, of an early version")
    running = mean, variance
    if training:
        axes = (0, *range(2, x.ndim))
        middle = at.rounded(x.mean(axes, keepdims=True))
        mean, variance = middle.reshape(-1), variance_of(at, x, middle, axes).reshape(-1)
        running = running[0] * momentum + mean * (1 - momentum), running[1] * momentum + variance * (1 - momentum)
    if x.ndim == 1:
        return scale * (at.rounded(x) - mean) / np.sqrt(variance + epsilon) + bias
    scale, bias, mean, variance = (per_channel(each, x.ndim) for each in (scale, bias, mean, variance))
    found = scale * (at.rounded(x) - mean) / np.sqrt(variance + epsilon) + bias
    return (found, *running) if at.count > 1 else found


@judges("InstanceNormalization")
def instance_normalization(at: NodeSite) -> Array:
    x = at[0]
    found, _, _ = standardized(at, x, tuple(range(2, x.ndim)), at.attr("epsilon", EPSILON))
    return per_channel(at[1], x.ndim) * found + per_channel(at[2], x.ndim)


@judges("GroupNormalization")
def group_normalization(at: NodeSite) -> Array:
    x, groups = at[0], at.attr("num_groups")
    parts = x.reshape(x.shape[0], groups, -1)
    found = standardized(at, parts, (2,), at.attr("epsilon", EPSILON))[0].reshape(x.shape)
    scale, bias = at[1], at[2]
    if at.version < 21 and len(scale) != x.shape[1]:
        scale, bias = (np.repeat(each, x.shape[1] // groups) for each in (scale, bias))
    return per_channel(scale, x.ndim) * found + per_channel(bias, x.ndim)


@judges("LayerNormalization")
def layer_normalization(at: NodeSite) -> Any:
    x = at[0]
    axes = tuple(range(at.attr("axis", -1) % x.ndim, x.ndim))
    found, mean, inverse = standardized(at, x, axes, at.attr("epsilon", EPSILON))
    found = found * at[1] + (at[2] if at.has(2) else 0)
    return (found, mean, inverse)[: max(at.count, 1)]


@judges("RMSNormalization", "SimplifiedLayerNormalization")
def rms_normalization(at: NodeSite) -> Any:
    x = at[0]
    axes = tuple(range(at.attr("axis", -1) % x.ndim, x.ndim))
    found, inverse = root_mean_square(at, x, axes, at.attr("epsilon", EPSILON))
    return (found * at[1], inverse)[: max(at.count, 1)]


@judges("MeanVarianceNormalization")
def mean_variance_normalization(at: NodeSite) -> Array:
    """The standard's text divides by the deviation, its function by that plus 1e-9. The default axes are those of
    pictures; tensors of lower rank have the first of them."""
    x, axes = at[0], tuple(at.attr("axes") or (0, 2, 3))
    axes = tuple(axis for axis in axes if axis < x.ndim) if axes == (0, 2, 3) else axes
    mean = at.rounded(x.mean(axes, keepdims=True))
    return (at.rounded(x) - mean) / (np.sqrt(((x - mean) ** 2).mean(axes, keepdims=True)) + 1e-9)


@judges("LRN")
def local_response(at: NodeSite) -> Array:
    x, size = at[0], at.attr("size")
    before, after = (size - 1) // 2, size // 2
    total = np.zeros_like(x)
    for channel in range(x.shape[1]):
        part = x[:, max(0, channel - before) : min(x.shape[1] - 1, channel + after) + 1]
        total[:, channel] = (part**2).sum(1)
    alpha, beta, bias = at.attr("alpha", float(np.float32(1e-4))), at.attr("beta", 0.75), at.attr("bias", 1.0)
    return x / (bias + alpha / size * total) ** beta


@judges("LpNormalization")
def lp_normalization(at: NodeSite) -> Array:
    """ "If the Lp norm is zero ... the output is 0"."""
    x, axis, p = at[0], at.attr("axis", -1), at.attr("p", 2)
    norm = np.abs(x).sum(axis, keepdims=True) if p == 1 else np.sqrt((x**2).sum(axis, keepdims=True))
    return np.where(norm == 0, 0, at.rounded(x) / np.where(norm == 0, 1, norm))
