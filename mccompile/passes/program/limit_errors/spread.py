"""The distribution of a tensor's elements, estimated from weights: a few quantiles of each channel.

Inputs are taken to be normal, and elements to be independent of each other. That is crude, but it tells networks apart
whose rounding errors differ by orders of magnitude. Invariant: nothing is random; a model gives the same numbers
everywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from math import sqrt
from statistics import NormalDist

import numpy as np

from ....base.dims import NotStatic, static
from ....base.records import dataclass
from ....expr.evaluate import evaluate
from ....expr.ir import Apply, Expr, Index, Operand, Size, literal, rebuild, walk
from ....kernels.api import viewed
from ....program.ir import View

MANY = 32  # quantiles
PLACES = (np.arange(MANY) + 0.5) / MANY
_NORMAL = np.array([NormalDist().inv_cdf(place) for place in PLACES])
NORMAL: np.ndarray = (_NORMAL / _NORMAL.std())[None]
MOST = 1 << 14  # channels that are told apart, and elements of a constant that are looked at
GOLDEN = (sqrt(5) - 1) / 2  # multiples of it are spread evenly
STEP = 0.25  # of a deviation: along it the slope of an expression is taken
STEEPEST = 100.0
HUGE = 1e30


@dataclass(frozen=True)
class Spread:
    """Of a buffer: the element at offset n belongs to channel n // step % channels."""

    quantiles: np.ndarray  # [channels, MANY]
    step: int = 1

    @property
    def square(self) -> float:
        """The mean of the squares of all elements."""
        return float(np.mean(self.quantiles**2))

    def along(self, view: View, axis: int) -> np.ndarray:
        """Quantiles at the positions along an axis of a view: [1, MANY] where they are alike or not told apart."""
        channels = self.channels(view, axis)
        found: np.ndarray = self.quantiles[channels] if channels is not None else self.quantiles.mean(0)[None]
        return found

    def channels(self, view: View, axis: int) -> np.ndarray | None:
        """The channel at each position along an axis; None where it is the same one, or not known."""
        if len(self.quantiles) == 1 or not view.shape:
            return None
        try:
            count, stride, offset = static(view.shape[axis]), static(view.strides[axis]), static(view.offset)
        except NotStatic:
            return None
        if count > MOST:
            return None
        found: np.ndarray = (offset + np.arange(count) * stride) // self.step % len(self.quantiles)
        return found if (found != found[:1]).any() else None


ALIKE = Spread(NORMAL)


def normal(means: np.ndarray, variances: np.ndarray) -> np.ndarray:
    quantiles: np.ndarray = means[:, None] + np.sqrt(variances)[:, None] * NORMAL
    return quantiles


def pooled(quantiles: np.ndarray) -> np.ndarray:
    """Those of the elements of all channels together."""
    found: np.ndarray = np.quantile(quantiles, PLACES)[None]
    return found


def largest_of(quantiles: np.ndarray, many: int) -> np.ndarray:
    """Quantiles of the largest of several elements."""
    at = np.interp(PLACES ** (1 / many), PLACES, np.arange(MANY))
    low = at.astype(int)
    high = np.minimum(low + 1, MANY - 1)
    found: np.ndarray = quantiles[:, low] + (at - low) * (quantiles[:, high] - quantiles[:, low])
    return found


def of_constant(view: View, axis: int) -> np.ndarray:
    """One value for each position along an axis if a constant varies along no other; else its own quantiles."""
    assert view.buffer.constant is not None
    once = tuple(1 if stride == 0 else dim for dim, stride in zip(view.shape, view.strides, strict=True))
    array = viewed(replace(view, shape=once), view.buffer.constant)  # what is broadcast says nothing more
    if not array.size or 0 in view.shape:
        return NORMAL
    if axis_of_constant(view) == axis and array.size <= MOST:
        found: np.ndarray = np.repeat(finite(array.reshape(-1, 1)), MANY, 1)
        return found
    flat = array.reshape(-1)
    found = np.quantile(finite(flat[:: -(-flat.size // MOST)]), PLACES)[None]
    return found


def finite(values: np.ndarray) -> np.ndarray:
    """Without what is not a number or too large to be squared."""
    found: np.ndarray = np.clip(np.nan_to_num(values.astype(np.float64)), -HUGE, HUGE)
    return found


def axis_of_constant(view: View) -> int | None:
    """The only axis along which a constant varies."""
    steps = zip(view.shape, view.strides, strict=True)
    axes = [axis for axis, (dim, step) in enumerate(steps) if dim != 1 and step != 0]
    return axes[0] if len(axes) == 1 else None


def through(expr: Expr, operands: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """Quantiles of what an expression makes of operands, each [channels or 1, MANY]; and for each operand and channel
    which part of the square of an error is kept."""
    expr, drawn = rebuild(expr, _first_place), _drawn(operands)
    result, kept = _values(expr, drawn), []
    for n, q in enumerate(drawn):
        step = STEP * q.std(-1).mean() or STEP
        moved = _values(expr, [*drawn[:n], q + step, *drawn[n + 1 :]])
        kept.append(np.mean(np.clip((moved - result) / step, -STEEPEST, STEEPEST) ** 2, -1))
    return np.sort(result, -1), kept


def centred(expr: Expr, operands: Sequence[np.ndarray], biases: Collection[int]) -> list[np.ndarray]:
    """The operands with biases that take away the means of what they are added to. Training sees to that, more or less;
    means that follow from weights alone would drift from layer to layer."""
    found, expr = list(operands), rebuild(expr, _first_place)
    for node in walk(expr):
        if not isinstance(node, Apply) or node.function != "add":
            continue
        for other, bias in (node.arguments, node.arguments[::-1]):
            if isinstance(bias, Operand) and bias.index in biases:
                means = _values(other, _drawn(found)).mean(-1, keepdims=True)
                found[bias.index] = np.repeat(-means, MANY, -1)
    return found


def _drawn(operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Elements of each operand, in orders that have nothing to do with each other."""
    found = []
    for n, quantiles in enumerate(operands):
        order = np.argsort(np.argsort(np.arange(1, MANY + 1) * GOLDEN * n % 1, kind="stable"), kind="stable")
        found.append(quantiles[:, order])
    return found


def _first_place(node: Expr) -> Expr | None:
    """Expressions of places and of sizes that are known only at run time say little about how elements are spread."""
    return literal(0, node.dtype) if isinstance(node, Index | Size) else None


def _values(expr: Expr, drawn: Sequence[np.ndarray]) -> np.ndarray:
    shape = np.broadcast_shapes((1, MANY), *(q.shape for q in drawn))
    dtypes = {node.index: node.dtype.numpy for node in walk(expr) if isinstance(node, Operand)}
    drawn = [q.astype(dtypes.get(n, np.float32)) for n, q in enumerate(drawn)]
    found: np.ndarray = np.nan_to_num(evaluate(expr, drawn, shape).astype(np.float64), posinf=0.0, neginf=0.0)
    return found
