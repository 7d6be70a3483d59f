"""Numbers windows that slide over axes: which elements each tap reads, and where it reads padding or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....base.records import dataclass
from ....kinds.conv import Conv
from ....kinds.conv_transpose import ConvTranspose
from ....kinds.pool import Pool
from .kind_rules import Operands, name_of, numbered
from .numbers import Numbers, factors, joined, mixed, named, summed


@numbered(Conv)
def conv(kind: Conv, of: Operands) -> Numbers:
    x, w = of.numbers[:2]
    rank, shape = len(kind.strides), of.results[0]
    name = name_of(kind, strides=(1,) * rank, dilations=(1,) * rank, pads=(0,) * 2 * rank)
    grouped = x.reshape(x.shape[0], x.shape[1], kind.group, x.shape[2] // kind.group, *x.shape[3:])
    seen = summed(grouped, [3], "channels")
    for axis in range(rank):
        taps = _Taps(w.shape[axis + 3], kind.strides[axis], kind.dilations[axis], kind.pads[axis], shape[axis + 2])
        seen = taps.over(seen, axis + 3, [(kind.pads[axis + rank], "zero"), (0, "outside")])
    weights = summed(w, range(2, w.ndim), "weights")
    for zero in of.numbers[2 : kind.fixed]:
        weights = joined("zero point", weights, zero.reshape(zero.shape[0], -1))
    weights = joined(name, weights).reshape(-1, 1, kind.group, w.shape[1] // kind.group, *(1 for _ in range(rank)))
    made = mixed(np.expand_dims(seen, 3) + weights)
    return made.reshape(made.shape[0], *shape)


@dataclass(frozen=True)
class _Taps:
    """Along one axis."""

    count: int
    stride: int
    dilation: int
    before: int
    results: int

    def over(self, x: Numbers, axis: int, after: Sequence[tuple[int, str]]) -> Numbers:
        """What the taps see, where before the elements stand paddings, and behind them what `after` says; the last of
        that goes on for ever."""
        size = x.shape[axis]
        reach = (self.results - 1) * self.stride + (self.count - 1) * self.dilation + 1
        parts = [_filled(x, axis, self.before, after[0][1]), x]
        missing = max(reach - self.before - size, 0)
        for number, (most, name) in enumerate(after):
            count = missing if number == len(after) - 1 else min(most, missing)
            parts.append(_filled(x, axis, count, name))
            missing -= count
        padded = np.concatenate(parts, axis)
        total: Numbers | None = None
        for tap, factor in enumerate(factors(self.count, f"taps {axis}")):
            first = tap * self.dilation
            cut = [slice(None)] * x.ndim
            cut[axis] = slice(first, first + (self.results - 1) * self.stride + 1, self.stride)
            part = padded[tuple(cut)] * factor
            total = part if total is None else np.add(total, part, out=total)
        assert total is not None
        return total


def _filled(x: Numbers, axis: int, count: int, name: str) -> Numbers:
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    return np.broadcast_to(named(name), shape)


@numbered(Pool)
def pool(kind: Pool, of: Operands) -> Numbers:
    rank = len(kind.kernel)
    ones, none = (1,) * rank, (0,) * rank
    name = name_of(kind, strides=ones, dilations=ones, pads=none * 2, space=none)
    counted = "counted" if kind.count_include_pad else "outside"  # what a mean divides by
    seen = of.numbers[0]
    for axis in range(rank):
        steps = (kind.kernel[axis], kind.strides[axis], kind.dilations[axis], kind.pads[axis], of.results[0][axis + 2])
        seen = _Taps(*steps).over(seen, axis + 3, [(kind.pads[axis + rank], counted), (0, "outside")])
    return joined(name, seen)


@numbered(ConvTranspose)
def conv_transpose(kind: ConvTranspose, of: Operands) -> Numbers:
    x, w = of.numbers[:2]
    rank, shape = len(kind.strides), of.results[0]
    name = name_of(kind, strides=(1,) * rank, dilations=(1,) * rank, pads=(0,) * rank, space=(0,) * rank)
    grouped = (kind.group, x.shape[2] // kind.group)
    seen = summed(x.reshape(*x.shape[:2], *grouped, *x.shape[3:]), [3], "channels")
    for axis in range(rank):
        before = kind.pads[axis], shape[axis + 2]
        seen = _spread(seen, axis + 3, w.shape[axis + 3], kind.strides[axis], kind.dilations[axis], *before)
    weights = w.reshape(w.shape[0], *grouped, *w.shape[2:])
    weights = summed(weights, [2, *range(4, weights.ndim)], "weights")
    for zero in of.numbers[2 : kind.fixed]:
        weights = joined("zero point", weights, zero.reshape(-1, 1, 1))
    weights = joined(name, weights).reshape(-1, 1, kind.group, w.shape[2], *(1 for _ in range(rank)))
    made = mixed(np.expand_dims(seen, 3) + weights)
    return made.reshape(made.shape[0], *shape)


def _spread(x: Numbers, axis: int, taps: int, stride: int, dilation: int, before: int, results: int) -> Numbers:
    """Of each result, the taps that reach it; nothing is added where none does."""
    shape = (*x.shape[:axis], results, *x.shape[axis + 1 :])
    total = np.zeros(shape, np.uint64)
    moved, source = np.moveaxis(total, axis, 0), np.moveaxis(x, axis, 0)
    for tap, factor in enumerate(factors(taps, f"taps {axis}")):
        there = np.arange(results) + before - tap * dilation
        hit = (there % stride == 0) & (there >= 0) & (there // stride < x.shape[axis])
        moved[hit] += source[there[hit] // stride] * factor
    return total
