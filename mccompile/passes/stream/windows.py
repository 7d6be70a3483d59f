"""Windows that slide over time: convolutions, pools, and operators that repeat elements or spread them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from ...ops.api import normal_axis
from ...ops.conv import Conv, ConvInteger, ConvTranspose
from ...ops.fourier import STFT
from ...ops.pool import AveragePool, LpPool, MaxPool
from ...ops.resize import Resize
from ...ops.rules.resize_tables import coordinates, nearest
from ...ops.rules.window import Window
from .motion import Motion, NodeMotion, Step, moves

_LOCAL = ("half_pixel", "asymmetric", "pytorch_half_pixel")  # places that do not depend on how long the axis is


@moves(Conv, ConvInteger)
def convolution(at: NodeMotion) -> Step | None:
    op = at.node.op
    assert isinstance(op, Conv | ConvInteger)
    return slid(at, op.window(at.site), op)


@moves(MaxPool, AveragePool, LpPool)
def pool(at: NodeMotion) -> Step | None:
    op = at.node.op
    assert isinstance(op, MaxPool | AveragePool | LpPool)
    if op.ceil_mode and op.auto_pad not in ("NOTSET", "", "VALID"):
        op = replace(op, ceil_mode=0)  # SAME says itself how many positions there are
    return None if at.wants(1) else slid(at, op.window(at.site)[0], op)


def slid(at: NodeMotion, window: Window, op: Any) -> Step | None:
    """Element i is made of those from i * stride - before on, `reach` of them. What the last one reads beyond the end
    is padding, whether the attributes name it or the window hangs over."""
    motion = at.only(0)
    if motion is None or motion.axis == 1:
        return None
    if motion.axis == 0:
        return at.carried(motion, saves=True)
    own, rank = motion.axis - 2, len(window.kernel)
    length = at.length(motion.axis)
    reach = (window.kernel[own] - 1) * window.dilations[own] + 1
    before = window.pads[own]
    stride = window.strides[own] if length > 1 else 1  # of one element there is no next one
    after = (length - 1) * stride - before + reach - motion.length
    seen = motion.padded(at.node, before, after)
    found = Motion(
        motion.axis,
        length,
        motion.stride * stride,
        -(-(seen.low + before) // stride),
        (seen.high + before - reach) // stride + 1,
        motion.oldest - before * motion.stride,
        seen.start,
        seen.end,
    )
    low, high = at.new(found)
    pads = list(window.pads)
    pads[own] = pads[own + rank] = 0
    strides = [stride if axis == own else each for axis, each in enumerate(window.strides)]
    step = replace(op, auto_pad="NOTSET", pads=tuple(pads), strides=tuple(strides))
    reads = {0: (low * stride - before, (high - 1) * stride - before + reach)}
    return Step((found,), reads, step, saves=True)


@moves(STFT)
def transformed_windows(at: NodeMotion) -> Step | None:
    """Frame i is of the elements from i * step on."""
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, STFT)
    if motion is None or not at.site.is_known(1, 3):
        return None
    if motion.axis == 0:
        return at.carried(motion, saves=True)
    step, length = op.step(at.site), op.lengths(at.site, motion.length)[0]
    found = Motion(
        1,
        at.length(1),
        motion.stride * step,
        -(-motion.low // step),
        (motion.high - length) // step + 1,
        motion.oldest,
        motion.start,
        motion.end,
    )
    low, high = at.new(found)
    operands = {} if at.site.has(2) else {3: np.array(length, np.int64)}  # else all of the signal is one frame
    return Step((found,), {0: (low * step, (high - 1) * step + length)}, operands=operands, saves=True)


@moves(Resize)
def repeated(at: NodeMotion) -> Step | None:
    """Each element so many times; other axes are resized as they are."""
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, Resize)
    if motion is None or not at.site.is_known(3) or op.keep_aspect_ratio_policy != "stretch":
        return None
    axes = op.resized(at.site)
    change = axes[motion.axis]
    times, factor = at.length(motion.axis), 1
    if change is not None:
        known = change.known
        factor = max(times // motion.length, 1)
        if known is None or op.mode != "nearest" or times != factor * motion.length:
            return None
        if op.coordinate_transformation_mode not in _LOCAL:
            return None
        places = nearest(coordinates(op.coordinate_transformation_mode, known), known, op.nearest_mode)
        if (places != np.arange(times) // factor).any():
            return None
    stride = Fraction(motion.stride) / factor
    found = replace(
        motion,
        length=times,
        stride=stride,
        low=motion.low * factor,
        high=motion.high * factor,
        oldest=motion.oldest - (factor - 1) * stride,
    )
    low, high = at.new(found)
    operands = {}
    if at.site.has(3):
        named = [normal_axis(each, at.result().rank) for each in op.axes or range(at.result().rank)]
        sizes = at.site.known_ints(3, "sizes")
        wanted = [high - low if axis == motion.axis else size for axis, size in zip(named, sizes, strict=True)]
        operands = {3: np.array(wanted, np.int64)}
    return Step((found,), {0: (low // factor, high // factor)}, operands=operands)


@moves(ConvTranspose)
def transposed(at: NodeMotion) -> Step | None:
    """Element i of the operand adds to those from i * stride - before on, `reach` of them."""
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, ConvTranspose)
    if motion is None or motion.axis < 2:
        return None
    kind = op.kind(at.site)
    own, rank = motion.axis - 2, len(kind.strides)
    stride, before = kind.strides[own], kind.pads[own]
    reach = (at.site.shape(1)[motion.axis] - 1) * kind.dilations[own] + 1
    if not isinstance(reach, int):
        return None
    lead = max(reach, stride)  # what no element adds to is made with the one before
    # Nothing comes from outside of the window: elements near its ends lack what the past and the future would add.
    seen = motion.padded(at.node, lead - stride, lead - stride)
    found = Motion(
        motion.axis,
        at.length(motion.axis),
        Fraction(motion.stride) / stride,
        (seen.low - 1) * stride + lead - before,
        seen.high * stride - before,
        motion.oldest + (before - lead + 1) * Fraction(motion.stride) / stride,
        seen.start,
        seen.end or at.node,
    )
    low, high = at.new(found)
    first = min(-(-(low + before - reach + 1) // stride), (low + before) // stride)
    cut = low + before - first * stride
    whole = (seen.high - first - 1) * stride + reach
    more = max(high - low + cut - whole, 0)
    pads = _spatial(kind.pads, op, at, rank)
    pads[own], pads[own + rank] = cut, max(whole - cut - (high - low), 0)
    extra = list(op.output_padding or (0,) * rank)
    extra[own] = more
    if op.output_shape is not None or op.auto_pad.startswith("SAME"):
        return None
    step = replace(op, auto_pad="NOTSET", pads=tuple(pads), output_padding=tuple(extra))
    return Step((found,), {0: (first, seen.high)}, step, saves=True)


def _spatial(before: tuple[int, ...], op: ConvTranspose, at: NodeMotion, rank: int) -> list[int]:
    return list(op.pads or (0,) * (2 * rank)) if op.auto_pad in ("NOTSET", "") else [0] * (2 * rank)
