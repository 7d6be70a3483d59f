"""Operators whose elements depend only on elements of the same time: elementwise ones, sums over other axes,
products."""

from __future__ import annotations

from dataclasses import replace

from ...graph.ir import Node
from ...ops.api import normal_axis
from ...ops.choose import Clip
from ...ops.fourier import DFT
from ...ops.identity import Dropout, Identity
from ...ops.matmul import Gemm, MatMul, MatMulInteger
from ...ops.normalization import LRN, BatchNormalization, LayerNormalization, LpNormalization, RMSNormalization
from ...ops.quantize import Linear
from ...ops.reduce import Reduction
from ...ops.rules.elementwise import Elementwise
from ...ops.softmax import AlongAxis
from .motion import Motion, NodeMotion, Step, moves


@moves(Elementwise, Clip)
def elementwise(at: NodeMotion) -> Step | None:
    motion = together(at, at.result().rank)
    return None if motion is None else all_new(at, motion)


@moves(Identity, Dropout)
def same(at: NodeMotion) -> Step | None:
    motion = at.only(0)
    return None if motion is None or at.wants(1) or at.site.has(2) else at.carried(motion)


@moves(Linear)
def quantizers(at: NodeMotion) -> Step | None:
    """One scale, or one for each place along another axis."""
    motion, scale = at.only(0), at.site.type(1)
    if motion is None:
        return None
    if scale.rank == 1 and scale.count != 1:
        assert isinstance(at.node.op, Linear)
        along = at.node.op.along(scale.shape, at.site.shape(0))
        return None if along == motion.axis else at.carried(motion)
    return at.carried(motion) if scale.rank < 2 or scale.shape[motion.axis] == 1 else None


def beside(at: NodeMotion) -> Step | None:
    """Tensors that go on together, joined along another axis."""
    motion = together(at, at.result().rank)
    return all_new(at, motion) if motion is not None and None not in at.motions else None


@moves(AlongAxis)
def softmax(at: NodeMotion) -> Step | None:
    assert isinstance(at.node.op, AlongAxis)
    motion = at.only(0)
    apart = motion is not None and motion.axis not in at.node.op.axes(at.result().rank)
    return at.carried(motion) if motion is not None and apart else None


@moves(LayerNormalization, RMSNormalization)
def layer_normalization(at: NodeMotion) -> Step | None:
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, LayerNormalization | RMSNormalization)
    first = normal_axis(op.axis, at.result().rank)
    if motion is None or motion.axis >= first:
        return None
    others = [at.site.shape(place) for place in (1, 2) if at.site.has(place)]
    varies = any(len(shape) > at.result().rank - first for shape in others)
    return None if varies else at.carried(motion)


@moves(BatchNormalization, LRN)
def per_channel(at: NodeMotion) -> Step | None:
    motion = at.only(0)
    odd = getattr(at.node.op, "training_mode", 0) or not getattr(at.node.op, "spatial", 1)
    return None if motion is None or odd or motion.axis == 1 else at.carried(motion)


@moves(LpNormalization)
def lp_normalization(at: NodeMotion) -> Step | None:
    assert isinstance(at.node.op, LpNormalization)
    motion = at.only(0)
    if motion is None or motion.axis == normal_axis(at.node.op.axis, at.result().rank):
        return None
    return at.carried(motion)


@moves(Reduction)
def reduction(at: NodeMotion) -> Step | None:
    """Over other axes."""
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, Reduction)
    if motion is None or not at.site.is_known(1) or motion.axis in (axes := op.axes(at.site)):
        return None
    axis = motion.axis if op.keepdims else motion.axis - sum(a < motion.axis for a in axes)
    return Step((moved_to(motion, axis),), {0: at.new(motion)}, saves=True)


@moves(DFT)
def transformed(at: NodeMotion) -> Step | None:
    """Along another axis."""
    op, motion = at.node.op, at.only(0)
    assert isinstance(op, DFT)
    if motion is None or not at.site.is_known(1, 2) or motion.axis == at.result().rank - 1:
        return None
    (choice,) = op.choices(at.site)
    return None if choice.axis == motion.axis else at.carried(motion, saves=True)


@moves(MatMul, MatMulInteger)
def product(at: NodeMotion) -> Step | None:
    """Rows, columns or batches that move, times weights."""
    rank = at.result().rank
    for place, motion in enumerate(at.motions[:2]):
        if motion is None:
            continue
        own, other = at.site.type(place).rank, at.site.shape(1 - place)
        summed = own - 1 if place == 0 else max(own - 2, 0)
        axis = rank - own + motion.axis
        batch = axis < rank - 2
        across = len(other) - rank + axis  # the same axis of the other operand
        if motion.axis == summed or len(other) < 2 or own < 2 or at.only(place) is None or _several_zeros(at):
            return None
        if batch and across >= 0 and other[across] != 1:
            return None
        return Step((moved_to(motion, axis),), {place: at.new(motion)}, saves=True)
    return None


def _several_zeros(at: NodeMotion) -> bool:
    """Zero points of rows or columns."""
    return any(at.site.has(place) and at.site.type(place).count != 1 for place in (2, 3))


@moves(Gemm)
def gemm(at: NodeMotion) -> Step | None:
    assert isinstance(at.node.op, Gemm)
    for place, turned in ((0, at.node.op.transA), (1, at.node.op.transB)):
        motion = at.motions[place]
        if motion is None:
            continue
        kept = place if not turned else 1 - place  # the axis that is not summed over
        if motion.axis != kept or at.only(place) is None:
            return None
        added = at.site.shape(2) if at.site.has(2) else ()
        across = len(added) - 2 + place
        if across >= 0 and added[across] != 1:
            return None
        return Step((moved_to(motion, place),), {place: at.new(motion)}, saves=True)
    return None


def moved_to(motion: Motion, axis: int) -> Motion:
    return replace(motion, axis=axis)


def all_new(at: NodeMotion, motion: Motion) -> Step:
    """Every operand that moves gives the elements that are new in the result: older ones of those that are ahead."""
    places = [place for place, own in enumerate(at.motions) if own is not None]
    return Step((motion,) * len(at.node.outputs), dict.fromkeys(places, at.new(motion)))


def together(at: NodeMotion, rank: int) -> Motion | None:
    """How the result of operands that broadcast moves: as far as the last of them; None where what they are at one time
    is not at one place."""
    found: list[Motion] = []
    for place, motion in enumerate(at.motions):
        if motion is not None:
            found.append(moved_to(motion, rank - at.site.type(place).rank + motion.axis))
    if len({(m.axis, m.stride, m.length) for m in found}) != 1:
        return None
    axis = found[0].axis
    for place, motion in enumerate(at.motions):
        if motion is None and at.site.has(place):
            shape = at.site.shape(place)
            across = len(shape) - rank + axis
            if across >= 0 and shape[across] != 1:
                return None
    first, last = max(found, key=lambda m: m.low), min(found, key=lambda m: m.high)
    return Motion(
        axis,
        found[0].length,
        found[0].stride,
        first.low,
        last.high,
        min(m.oldest for m in found),
        _tie([first, *found], "start"),
        _tie([last, *found], "end"),
    )


def _tie(motions: list[Motion], side: str) -> Node | None:
    return next((node for motion in motions if (node := getattr(motion, side)) is not None), None)
