"""The gradients of convolutions, as convolutions and products.

By the input: the gradient of the result, convolved with the weights turned around; with strides, each of the positions
that one stride skips over meets taps of its own, so it is a convolution of its own. By the weights: a convolution where
batch and channels change places; of one tap a product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...graph.ir import Value
from .backward import Backward, static_shape

MOST_TAPS = 25  # of a depthwise convolution, each of which is summed up by itself


class _Phase(NamedTuple):
    """Of an axis: positions `first`, `first + stride` ... of the input, which `taps` taps from `tap` on meet."""

    first: int
    places: int  # how many of these
    tap: int
    taps: int
    begin: int  # zeros before and behind the gradient of the result; cut off where negative
    end: int


def input_gradient(back: Backward, of: Value, pads: Sequence[int], sliding: Mapping[str, Any]) -> Value:
    """By the input (operand 0) of a convolution with the weights that are operand 1."""
    shape, w, group = back.shape(0), back.input(1), sliding["group"]
    strides, dilations, rank = sliding["strides"], sliding["dilations"], len(shape) - 2
    if any(step > 1 and gap > 1 for step, gap in zip(strides, dilations, strict=True)):
        found = back.op("ConvTranspose", of, w, **sliding)
        return back.fitted(found, 2, [-pad for pad in pads[:rank]], shape[2:])
    outputs, inputs, *kernel = static_shape(w)
    places = [*range(3, 3 + rank)]
    w = back.reshape(w, (group, outputs // group, inputs, *kernel))
    w = back.reshape(back.transpose(w, [0, 2, 1, *places]), (group * inputs, outputs // group, *kernel))

    def interleaved(phases: tuple[_Phase, ...]) -> Value:
        """The positions of these phases of the first axes, and all of the others."""
        axis = len(phases)
        if axis == rank:
            return _phase_gradient(back, of, w, phases, sliding)
        size, step = shape[2 + axis], min(strides[axis], shape[2 + axis])
        own = [
            _phase(first, size, strides[axis], dilations[axis], kernel[axis], pads[axis], static_shape(of)[2 + axis])
            for first in range(step)
        ]
        return _woven(back, [interleaved((*phases, phase)) for phase in own], 2 + axis, size)

    return interleaved(())


def _phase(first: int, size: int, stride: int, dilation: int, kernel: int, pad: int, result: int) -> _Phase:
    count, tap = -(-(size - first) // stride), (first + pad) % stride
    taps, place = max(0, -(-(kernel - tap) // stride)), (first + pad - tap) // stride
    return _Phase(first, count, tap, taps, (taps - 1) * dilation - place, count + place - result)


def _phase_gradient(back: Backward, of: Value, w: Value, phases: Sequence[_Phase], sliding: Mapping[str, Any]) -> Value:
    counts = [phase.places for phase in phases]
    if any(phase.taps == 0 for phase in phases):
        return back.expand(back.number(0, of), (*static_shape(of)[:1], *static_shape(w)[:1], *counts))
    for axis, (phase, stride) in enumerate(zip(phases, sliding["strides"], strict=True), 2):
        last = phase.tap + stride * (phase.taps - 1)
        bounds = back.ints([last]), back.ints([np.iinfo(np.int64).min]), back.ints([axis]), back.ints([-stride])
        w = w if static_shape(w)[axis] == 1 else back.op("Slice", w, *bounds)
    cut = [(min(0, phase.begin), min(0, phase.end)) for phase in phases]
    of = back.pad(of, *([0, 0, *(each[side] for each in cut)] for side in (0, 1)))
    pads = tuple(max(0, side) for side in (*(phase.begin for phase in phases), *(phase.end for phase in phases)))
    ones = (1,) * len(phases)
    return back.op("Conv", of, w, pads=pads, strides=ones, dilations=sliding["dilations"], group=sliding["group"])


def _woven(back: Backward, parts: Sequence[Value], axis: int, size: int) -> Value:
    """One position of each part in turn."""
    if len(parts) == 1:
        return parts[0]
    most = static_shape(parts[0])[axis]
    grown = [back.pad_axis(part, axis, 0, most - static_shape(part)[axis]) for part in parts]
    before, behind = static_shape(parts[0])[:axis], static_shape(parts[0])[axis + 1 :]
    apart = [back.reshape(part, (*before, most, 1, *behind)) for part in grown]
    whole = back.reshape(back.op("Concat", *apart, axis=axis + 1), (*before, most * len(parts), *behind))
    return back.slice(whole, axis, 0, size)


def weight_gradient(
    back: Backward, x: Value, of: Value, pads: tuple[int, ...], shape: tuple[int, ...], sliding: Mapping[str, Any]
) -> Value:
    """By the weights [M, C / group, ...] of a convolution of x [N, C, ...]. Groups are parts of the channels of x and
    of the result; strides and dilations change places, too."""
    group, batch, rank = sliding["group"], static_shape(x)[0], len(shape) - 2
    if group == 1 and prod(shape[2:]) == 1 and not any(pads):
        return back.reshape(_product(back, x, of, sliding["strides"]), shape)
    if shape[:2] == (group, 1) and 1 < prod(shape[2:]) <= MOST_TAPS:
        return back.reshape(_tap_by_tap(back, x, of, pads, shape[2:], sliding), shape)
    places = [*range(3, 3 + rank)]
    x = back.reshape(x, (batch, group, shape[1], *static_shape(x)[2:]))
    x = back.transpose(x, [2, 1, 0, *places])
    x = back.reshape(x, (shape[1], group * batch, *static_shape(x)[3:]))
    of = back.transpose(of, [1, 0, *range(2, 2 + rank)])
    turned = {"strides": sliding["dilations"], "dilations": sliding["strides"], "group": group}
    found = back.op("Conv", x, of, pads=pads, **turned)
    found = back.fitted(found, 2, [0] * rank, shape[2:])  # more taps than there are, where strides leave a rest
    return back.transpose(found, [1, 0, *range(2, 2 + rank)])


def _product(back: Backward, x: Value, of: Value, strides: Sequence[int]) -> Value:
    """Of all positions that one tap meets, as [M, C]."""
    rank, axes = len(strides), [*range(2, 2 + len(strides))]
    if any(step > 1 for step in strides):
        ends = [(size - 1) * step + 1 for size, step in zip(static_shape(of)[2:], strides, strict=True)]
        x = back.op("Slice", x, back.ints([0] * rank), back.ints(ends), back.ints(axes), back.ints(strides))
    channels, results = static_shape(x)[1], static_shape(of)[1]
    count = prod(static_shape(of)) // results
    left = back.reshape(back.transpose(of, [1, 0, *axes]), (results, count))
    right = back.reshape(back.transpose(x, [0, *axes, 1]), (count, channels))
    return back.op("MatMul", left, right)


def _tap_by_tap(
    back: Backward, x: Value, of: Value, pads: Sequence[int], kernel: Sequence[int], sliding: Mapping[str, Any]
) -> Value:
    """Of a depthwise convolution, as [C, taps]: the sum of what each tap meets."""
    channels, space, results = static_shape(x)[1], static_shape(x)[2:], static_shape(of)[2:]
    axes, strides, found = [*range(2, 2 + len(kernel))], sliding["strides"], []
    for tap in np.ndindex(*kernel):
        moved = [int(t) * gap - pad for t, gap, pad in zip(tap, sliding["dilations"], pads, strict=False)]
        every = zip(moved, strides, space, results, strict=True)
        met = [(max(0, -(move // step)), min(most, (size - 1 - move) // step + 1)) for move, step, size, most in every]
        first, end = np.transpose(met)
        if (first >= end).any():
            found.append(back.expand(back.number(0, of), (channels, 1)))
            continue
        part = back.op("Slice", of, back.ints(first), back.ints(end), back.ints(axes))
        begin, behind = first * strides + moved, (end - 1) * strides + moved + 1
        seen = back.op("Slice", x, back.ints(begin), back.ints(behind), back.ints(axes), back.ints(strides))
        summed = back.sum(back.op("Mul", part, seen), [0, *axes], keepdims=False)
        found.append(back.reshape(summed, (channels, 1)))
    return back.op("Concat", *found, axis=1)
