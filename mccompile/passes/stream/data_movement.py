"""Rules of operators that only move data (Transpose, Reshape, Slice, Split, Gather, Pad, Concat): how they change the
axis of time, and the position from which elements are counted."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from ...ops.api import normal_axes, normal_axis
from ...ops.concat import Concat, Split
from ...ops.gather import Gather
from ...ops.pad import Pad
from ...ops.reshape import Reshape, SameElements, Squeeze, Unsqueeze
from ...ops.slice import Slice
from ...ops.transpose import Transpose
from .elementwise_motion import beside
from .motion import Motion, NodeMotion, Step, moves


@moves(Transpose)
def transpose(at: NodeMotion) -> Step | None:
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, Transpose)
    if motion is None:
        return None
    order = op.perm if op.perm is not None else tuple(reversed(range(at.result().rank)))
    return Step((replace(motion, axis=order.index(motion.axis)),), {0: at.new(motion)})


@moves(Unsqueeze, Squeeze)
def axes_of_one(at: NodeMotion) -> Step | None:
    op, motion = at.node.op, at.only(0)
    if motion is None or not at.site.is_known(1):
        return None
    before, after = at.site.type(0).rank, at.result().rank
    if isinstance(op, Unsqueeze):
        added = normal_axes(at.site.known_ints(1, "the axes"), after)
        axis = [place for place in range(after) if place not in added][motion.axis]
        return Step((replace(motion, axis=axis),), {0: at.new(motion)})
    if not at.site.has(1):
        return None
    gone = normal_axes(at.site.known_ints(1, "the axes"), before)
    if motion.axis in gone:
        return None
    return Step((replace(motion, axis=motion.axis - sum(axis < motion.axis for axis in gone)),), {0: at.new(motion)})


@moves(SameElements)
def reshape(at: NodeMotion) -> Step | None:
    """Time stays an axis, or becomes one of blocks of `block` frames and one inside of them."""
    motion = at.only(0)
    if motion is None or not at.result().is_static:
        return None
    before, after = at.site.type(0).static_shape, at.result().static_shape
    outer, size = prod(before[: motion.axis]), motion.length
    inner = max(prod(before[motion.axis + 1 :]), 1)
    for axis, dim in enumerate(after):
        rest = prod(after[axis + 1 :])
        if prod(after[:axis]) != outer or dim * rest != size * inner or rest % inner or dim == 0:
            continue
        block = rest // inner
        if block > 1 and dim == 1 and size > 1:
            continue  # all of the window becomes one element
        low, high = -(-motion.low // block), motion.high // block
        found = replace(motion, axis=axis, length=dim, stride=motion.stride * block, low=low, high=high)
        first, last = at.new(found)
        shape = np.array([last - first if place == axis else each for place, each in enumerate(after)], np.int64)
        return Step((found,), {0: (first * block, last * block)}, Reshape(allowzero=0), {1: shape})
    return None


@moves(Slice)
def cut(at: NodeMotion) -> Step | None:
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, Slice)
    if motion is None or not at.site.is_known(1, 2, 3, 4):
        return None
    cuts = {axis: (first, count, step) for axis, first, count, step in op.cuts(at.site)}
    if motion.axis not in cuts:
        return at.carried(motion)
    first, count, step = cuts[motion.axis]
    if not (isinstance(first, int) and isinstance(count, int)) or step < 1 or count < 1:
        return None
    step = step if count > 1 else 1
    if len(cuts) == 1 and step == 1:
        return Step((motion.moved(first, count),), {}, shifts=(first,))
    found = replace(
        motion.moved(first, count),
        stride=motion.stride * step,
        low=-(-(motion.low - first) // step),
        high=(motion.high - first - 1) // step + 1,
    )
    low, high = at.new(found)
    given = [np.array(at.site.known_ints(place, "bounds")) for place in (1, 2)]
    axes = at.site.known_ints(3, "the axes") if at.site.has(3) else list(range(len(given[0])))
    place = [normal_axis(axis, at.result().rank) for axis in axes].index(motion.axis)
    given[0][place], given[1][place] = 0, np.iinfo(np.int64).max
    steps = np.array([cuts[normal_axis(axis, at.result().rank)][2] for axis in axes])
    steps[place] = step
    reads = {0: (first + low * step, first + (high - 1) * step + 1)}
    return Step((found,), reads, operands={1: given[0], 2: given[1], 3: np.array(axes), 4: steps})


@moves(Split)
def split(at: NodeMotion) -> Step | None:
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, Split)
    if motion is None or not at.site.is_known(1):
        return None
    axis, parts = op.parts(at.site)
    if axis != motion.axis:
        return at.carried(motion)
    sizes = [part for part in parts if isinstance(part, int)]
    starts = tuple(sum(sizes[:place]) for place in range(len(sizes)))
    found = tuple(motion.moved(start, size) for start, size in zip(starts, sizes, strict=True))
    return Step(found, {}, shifts=starts)


@moves(Gather)
def gather(at: NodeMotion) -> Step | None:
    """Along another axis, or rows of a table that indices which move name; else some places of the window."""
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, Gather)
    named = at.only(1)
    if named is not None:
        axis = normal_axis(op.axis, at.site.type(0).rank) + named.axis
        return Step((replace(named, axis=axis),), {1: at.new(named)})
    if motion is None:
        return None
    axis, places = normal_axis(op.axis, at.site.type(0).rank), at.site.type(1).rank
    if axis == motion.axis:
        return picked(at, motion)
    found = motion if motion.axis < axis else replace(motion, axis=motion.axis + places - 1)
    return Step((found,), {0: at.new(motion)})


def picked(at: NodeMotion, motion: Motion) -> Step | None:
    """One or several elements of the window."""
    known = at.site.value(1)
    if known is None or not known.size or not all(isinstance(place, int) for place in known.reshape(-1)):
        return None
    places = np.array(known.tolist(), np.int64)
    places = np.where(places < 0, places + motion.length, places)
    low, high = int(places.min()), int(places.max()) + 1
    return Step((None,), {0: (low, high)}, operands={1: places - low})


@moves(Pad)
def pad(at: NodeMotion) -> Step | None:
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, Pad)
    if motion is None or not at.site.is_known(1, 3):
        return None
    before, after = op.pads(at.site)
    first, last = before[motion.axis], after[motion.axis]
    found = motion.padded(at.node, first, last).moved(-first, at.length(motion.axis))
    before[motion.axis] = after[motion.axis] = 0
    if not any(before) and not any(after):
        return Step((found,), {}, shifts=(-first,))
    low, high = at.new(found)
    pads = np.array([*before, *after], np.int64)
    return Step((found,), {0: (low - first, high - first)}, operands={1: pads, 3: np.arange(len(before))})


@moves(Concat)
def concat(at: NodeMotion) -> Step | None:
    """Beside each other; or constants around what moves, as padding becomes."""
    op = at.node.op
    assert isinstance(op, Concat)
    moving = [(place, motion) for place, motion in enumerate(at.motions) if motion is not None]
    place, motion = moving[0]
    axis = normal_axis(op.axis, at.result().rank)
    if axis != motion.axis:
        return beside(at)
    if len(moving) > 1:
        return None
    sizes = [at.site.type(each).static_shape[axis] for each in range(len(at.motions))]
    before, after = sum(sizes[:place]), sum(sizes[place + 1 :])
    found = motion.padded(at.node, before, after).moved(-before, at.length(axis))
    return Step((found,), {}, shifts=(-before,), source=place)
