"""move_resize: a 1x1 convolution goes in front of a Resize that enlarges.

Interpolation weighs positions, a 1x1 convolution channels: their order does not matter, and weights of positions add up
to 1, so a bias passes through. In front, the convolution has fewer positions to compute, and the large tensor between
the two becomes one of fewer channels.

Invariant: only where the result has no more channels than x. Sums are rounded in another order, as everywhere floats
are added up.
"""

from __future__ import annotations

import numpy as np

from ...base.dims import static
from ...graph.ir import Graph, Value
from ..api import Context
from ..pattern import AnyValue, Maker, Match, ResultOf, Rule, rewrite

_RESIZED = ResultOf("Resize", AnyValue("x"), rest=True, name="resize", read_once=True)
_SIZES = 2  # behind x
_SINGLE = (None, "", "NOTSET", "VALID")


def move_resize(graph: Graph, context: Context) -> None:
    rewrite(graph, RULES)


def _earlier(match: Match, make: Maker) -> Value | None:
    x, w, resize, conv = match["x"].type, match["w"].type, match.node("resize"), match.root
    between, out = resize.output.type, conv.output.type
    if not (x.is_static and w.is_static and between.is_static and out.is_static) or not x.dtype.is_float:
        return None
    window, fields = vars(conv.op), vars(resize.op)
    if window["group"] != 1 or set(w.shape[2:]) != {1} or out.shape[2:] != between.shape[2:]:
        return None
    if any(window["pads"] or ()) or window["auto_pad"] not in _SINGLE:
        return None
    if fields["coordinate_transformation_mode"] == "tf_crop_and_resize":
        return None  # what lies outside of x is another number
    if between.shape[:2] != x.shape[:2] or static(w.shape[0]) > static(w.shape[1]):
        return None
    if static(between.count) <= static(x.count):
        return None
    rest = list(resize.inputs[1:])
    if rest[_SIZES:] and rest[_SIZES] is not None and static(out.shape[1]) != static(between.shape[1]):
        if fields["keep_aspect_ratio_policy"] != "stretch":
            return None
        shape = (between.shape[0], out.shape[1], *between.shape[2:])
        axes = range(len(shape)) if fields["axes"] is None else fields["axes"]
        wanted = np.array([static(shape[axis]) for axis in axes], np.int64)
        rest[_SIZES] = make.constant(wanted, f"{resize.output.name}/sizes")
    return make.node(resize.op, make.node(conv.op, match["x"], *conv.inputs[1:]), *rest)


RULES = (Rule("conv_before_resize", ResultOf("Conv", _RESIZED, AnyValue("w"), rest=True), _earlier),)
