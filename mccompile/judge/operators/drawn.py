"""Random numbers of a seed. The standard names no generator, so these are numpy's of ONNX's own evaluator; what is made
of them is the standard's text: Bernoulli is its function body over RandomUniform, Multinomial draws from the
probabilities whose logarithms the operand has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges
from .casts import TYPES
from .moves import zeros_of

_SEEDS = 0xFFFFFFFF


def chance(at: NodeSite) -> np.random.RandomState:
    seed = at.attr("seed")
    if seed is None or seed != seed:
        raise NoWitness(f"{at.node.title} without a seed")
    return np.random.RandomState(int(seed) & _SEEDS)


def _shape(at: NodeSite) -> tuple[int, ...]:
    return at[0].shape if at.operands else tuple(int(size) for size in np.atleast_1d(at.attr("shape")))


@judges("RandomNormal", "RandomNormalLike")
def normal(at: NodeSite) -> Array:
    return np.asarray(chance(at).standard_normal(_shape(at))) * at.attr("scale", 1.0) + at.attr("mean", 0.0)


@judges("RandomUniform", "RandomUniformLike")
def uniform(at: NodeSite) -> Array:
    low = at.attr("low", 0.0)
    return np.asarray(chance(at).random_sample(_shape(at))) * (at.attr("high", 1.0) - low) + low


@judges("Bernoulli")
def bernoulli(at: NodeSite) -> Array:
    dtype = at.attr("dtype")
    below = np.asarray(chance(at).random_sample(at[0].shape) < at[0])
    return below.astype(zeros_of(at.type(0) if dtype is None else TYPES[int(dtype)]))


@judges("Multinomial")
def multinomial(at: NodeSite) -> Array:
    shares = np.exp(at[0] - at[0].max(1, keepdims=True))
    ends = np.cumsum(shares, 1)
    places = chance(at).random_sample((len(shares), int(at.attr("sample_size", 1)))) * ends[:, -1:]
    found = (ends[:, None, :-1] <= places[:, :, None]).sum(2)
    return found.astype(TYPES[int(at.attr("dtype", 6))])


@judges("Dropout")
def dropout(at: NodeSite) -> Any:
    training = bool(np.asarray(at.get(2, False)).any()) if at.version >= 12 else False
    training = training or (at.version < 7 and not at.attr("is_test", 0))
    ratio = float(np.asarray(at.get(1, at.attr("ratio", 0.5))))
    if training and ratio != 0:
        kept = np.asarray(chance(at).random_sample(at[0].shape) >= ratio)
        return np.where(kept, at[0], 0.0) / (1.0 - ratio), kept
    if at.version < 12:  # ONNX does not say what the mask is then
        return at[0]
    return at[0], np.ones(at[0].shape, bool)
