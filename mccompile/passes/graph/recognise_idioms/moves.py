"""Moves of elements that exporters write as reshapes: shuffles, blocks, repeated and skipped elements."""

from __future__ import annotations

import math

import numpy as np

from ....graph.ir import Node, Value
from ....ops.resize import Resize
from ....ops.slice import Slice
from ....ops.transpose import ChannelShuffle, DepthToSpace, SpaceToDepth, Transpose
from ...pattern import AnyValue, ConstantOperand, Maker, Match, ResultOf, Rule

X = AnyValue("x")


def _perm(node: Node) -> tuple[int, ...]:
    op, rank = node.op, node.output.type.rank
    assert isinstance(op, Transpose)
    return op.order(rank)


def _moved(match: Match, make: Maker) -> Value | None:
    """Reshape, Transpose, Reshape that is a channel shuffle, or space to depth, or back."""
    x, cut, out = match["x"].type, match.node("cut").output.type, match.root.output.type
    if not (x.is_static and cut.is_static and out.is_static) or x.rank < 3 or out.rank != x.rank:
        return None
    op = _move(x.static_shape, cut.static_shape, _perm(match.node("turn")), out.static_shape)
    return None if op is None else make.node(op, match["x"])


def _move(
    x: tuple[int, ...], cut: tuple[int, ...], perm: tuple[int, ...], out: tuple[int, ...]
) -> ChannelShuffle | DepthToSpace | SpaceToDepth | None:
    rank = len(x)
    if len(cut) > 3 and perm == (0, 2, 1, *range(3, len(cut))) and out == x:
        same = cut[0] == x[0] and cut[1] * cut[2] == x[1]  # and pictures may be cut in any way
        return ChannelShuffle(groups=cut[1]) if same else None
    if rank != 4 or len(cut) != 6:
        return None
    n, c, h, w = x
    if perm in ((0, 3, 5, 1, 2, 4), (0, 1, 3, 5, 2, 4)):
        b = cut[3]
        if cut == (n, c, h // b, b, w // b, b) and out == (n, c * b * b, h // b, w // b):
            return SpaceToDepth(blocksize=b, mode="DCR" if perm[1] == 3 else "CRD")
    for mode, (first, second, third), order in (
        ("DCR", (1, 2, 3), (0, 3, 4, 1, 5, 2)),
        ("CRD", (2, 3, 1), (0, 1, 4, 2, 5, 3)),
    ):
        b = cut[first]
        fits = perm == order and cut[second] == b and cut[third] * b * b == c and (cut[0], *cut[4:]) == (n, h, w)
        if fits and out == (n, c // (b * b), h * b, w * b):
            return DepthToSpace(blocksize=b, mode=mode)
    return None


def _every_other(match: Match, make: Maker) -> Value | None:
    """Every g-th channel, by Reshape to (.., g, ..), Transpose, Reshape to (g, ...), Gather of one of these."""
    x, index = match["x"].type, match["index"]
    cut, parts = match.node("cut").output.type, match.node("parts").output.type
    if not (x.is_static and cut.is_static and parts.is_static) or x.rank < 3 or index.fact.value is None:
        return None
    n, c, *space = x.static_shape
    groups = parts.static_shape[0]
    if c % groups or parts.static_shape != (groups, n, c // groups, *space) or index.type.rank != 0:
        return None
    if cut.static_shape != (n * c // groups, groups, math.prod(space)) or _perm(match.node("turn")) != (1, 0, 2):
        return None
    if vars(match.root.op)["axis"] not in (0, -parts.rank):
        return None
    start = int(index.fact.value.item()) % groups
    bounds = [make.constant(np.array([n]), f"{match.root.output.name}/slice") for n in (start, c, 1, groups)]
    return make.node(Slice(), match["x"], *bounds)


def _repeated(match: Match, make: Maker) -> Value | None:
    """Reshape, Expand or Tile, Reshape that repeats every element of pictures along their axes."""
    types = match["x"].type, match.node("cut").output.type, match.node("wide").output.type, match.root.output.type
    if not all(type.is_static for type in types):
        return None
    x, cut, wide, out = (type.static_shape for type in types)
    if len(x) < 3 or len(out) != len(x) or out[:2] != x[:2] or len(cut) != len(wide) or 0 in out:
        return None
    if not _repeats_each(x, cut, wide, out):
        return None
    scales = np.array([after / before for before, after in zip(x, out, strict=True)], np.float32)
    op = Resize(mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    return make.node(op, match["x"], None, make.constant(scales, f"{match.root.output.name}/scales"))


def _repeats_each(x: tuple[int, ...], cut: tuple[int, ...], wide: tuple[int, ...], out: tuple[int, ...]) -> bool:
    """Does each axis of x become itself, then axes of 1 that are repeated?"""
    steps = list(zip(cut, wide, strict=True))
    for before, after in zip(x, out, strict=True):
        while before != 1 and steps and steps[0] == (1, 1):
            steps.pop(0)
        if before != 1 and (not steps or steps.pop(0) != (before, before)):
            return False
        count = before
        while count < after:
            if not steps or steps[0][0] != 1:
                return False
            count *= steps.pop(0)[1]
        if count != after:
            return False
    return all(step == (1, 1) for step in steps)


_CUT = ResultOf("Reshape", X, rest=True, name="cut")
_TURNED = ResultOf("Transpose", _CUT, name="turn")
_PARTS = ResultOf("Reshape", _TURNED, rest=True, name="parts")
MOVES = (
    Rule("move", ResultOf("Reshape", _TURNED, rest=True), _moved),
    Rule("repeated", ResultOf("Reshape", ResultOf("Expand Tile", _CUT, rest=True, name="wide"), rest=True), _repeated),
    Rule("every_other", ResultOf("Gather", _PARTS, ConstantOperand("index")), _every_other),
)
