"""Convolutions, pools, and what samples pictures."""

from __future__ import annotations

from math import prod

import numpy as np

from ..builder import Builder, Value
from .registry import makes

TALL = (12, 17, 24, 33)  # rows, of which a few more than are read may come early
REAL = ("float32", "float32", "float32", "float32", "float64", "float16")


def picture(g: Builder, space: int = 0, dtypes: tuple[str, ...] = REAL, channels: int = 0) -> Value:
    """[batch, channels, ...]; channels are fixed."""
    if not channels and g.maybe(0.6):
        ranks = (space + 2,) * 2 if space else (3, 5)
        fits = [v for v in g.values if v.dtype in dtypes and ranks[0] <= v.rank <= ranks[1] and not v.last]
        fits = [v for v in fits if v.is_fixed(1) and v.size and max(v.shape[1:]) <= 40]
        if fits:
            return g.pick(fits[-4:])
    space = space or g.pick([1, 2, 2, 2, 2, 3])
    count = channels or g.pick([1, 2, 3, 4] if g.tall else [1, 2, 3, 4, 4, 6, 8, 16, 17])
    free = list(g.free) if g.free and g.maybe(0.8) else []
    batch = g.pick(free) if free and g.maybe(0.6) else g.pick([1, 1, 1, 2])
    sides = [g.pick(free) if free and g.maybe(0.25) else g.pick([1, 2, 3, 4, 5, 6, 7, 8, 9]) for _ in range(space)]
    if g.tall:
        sides[0] = g.pick(TALL)
    return (
        g.leaf(g.pick(dtypes), (batch, count, *sides))
        if g.maybe(0.1)
        else g.input(g.pick(dtypes), (batch, count, *sides))
    )


def window(g: Builder, x: Value, pooled: bool = False) -> dict[str, object]:
    """Attributes of a window that fits at the smallest size."""
    space = x.rank - 2
    least = [min(array.shape[axis + 2] for array in x.arrays) for axis in range(space)]
    kernel = [g.integer(1, min(3, n)) if n else 1 for n in least]
    dilations = [2 if n >= 2 * k and g.maybe(0.15) else 1 for n, k in zip(least, kernel, strict=True)]
    strides = [g.pick([1, 1, 2, 3]) for _ in range(space)]
    found: dict[str, object] = {"kernel_shape": kernel, "strides": strides, "dilations": dilations}
    choice = g.integer(0, 5)
    if choice < 3 or (pooled and choice == 5 and any(d > 1 for d in dilations)):
        most = [(k - 1) * d if not pooled else k - 1 for k, d in zip(kernel, dilations, strict=True)]
        found["pads"] = [g.integer(0, n) for n in most * 2]
    elif choice == 3 and all(d == 1 for d in dilations):
        # SAME with a stride over the kernel is left to judgement: docs/fuzzing.md
        same = all(s <= k for s, k in zip(strides, kernel, strict=True))
        found["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER", "VALID"] if same else ["VALID"])
    return found


@makes("Conv")
def conv(g: Builder, op: str) -> Value | None:
    x = picture(g)
    channels, form = x.shape[1], window(g, x)
    groups = [n for n in range(1, channels + 1) if channels % n == 0]
    group = g.pick([1, 1, channels, g.pick(groups)])
    out = group * g.pick([1, 1, 2, 3, 4]) if group > 1 else g.pick([1, 2, 3, 4, 5, 8, 16, 17])
    kernel = form["kernel_shape"]
    assert isinstance(kernel, list)
    w = (
        g.weights(x.dtype, (out, channels // group, *kernel))
        if g.maybe(0.9)
        else g.input(x.dtype, (out, channels // group, *kernel))
    )
    bias = [g.drawn(x.dtype, (out,))] if g.maybe(0.6) else []
    return g.node(op, [x, w, *bias], group=group, exact=True, **form)


@makes("ConvTranspose")
def conv_transpose(g: Builder, op: str) -> Value | None:
    x = picture(g)
    channels, space = x.shape[1], x.rank - 2
    groups = [n for n in range(1, channels + 1) if channels % n == 0]
    group = g.pick([1, 1, channels, g.pick(groups)])
    kernel, strides = [g.integer(1, 3) for _ in range(space)], [g.integer(1, 3) for _ in range(space)]
    pads = [g.integer(0, (k - 1) // 2) for k in kernel * 2]
    more = [g.integer(0, s - 1) for s in strides]
    w = g.drawn(x.dtype, (channels, g.integer(1, 3), *kernel))
    bias = [g.drawn(x.dtype, (w.shape[1] * group,))] if g.maybe() else []
    form: dict[str, object] = {"pads": pads, "output_padding": more if g.maybe(0.4) else None}
    if g.maybe(0.15) and x.is_static:
        form["auto_pad"] = g.pick(["SAME_UPPER", "SAME_LOWER", "VALID"])
        del form["pads"]
    return g.node(op, [x, w, *bias], group=group, strides=strides, kernel_shape=kernel, exact=True, **form)


@makes("MaxPool", "AveragePool", "LpPool", opset=18)
def pool(g: Builder, op: str) -> Value | None:
    x = picture(g, dtypes=(*REAL, "uint8", "int8") if op == "MaxPool" else REAL)
    form = window(g, x, pooled=True)
    if op == "AveragePool":
        if g.opset < 19:
            del form["dilations"]
        form["count_include_pad"] = g.integer(0, 1)
    if op == "LpPool":
        form["p"] = g.pick([1, 2, 3])
    if form.get("auto_pad", "VALID") == "VALID":  # SAME says itself how many windows there are
        form["ceil_mode"] = g.integer(0, 1)
    if op == "MaxPool" and g.maybe(0.2):
        found = g.nodes_(op, [x], 2, exact=True, **form)
        return found[0] if found else None
    return g.node(op, [x], exact=op == "MaxPool", **form)


@makes("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")
def whole(g: Builder, op: str) -> Value | None:
    x = picture(g)
    if op == "GlobalMaxPool" and x.rank != 4 and x.dtype != "float32":
        return None  # the reference reduces other axes then
    return g.node(op, [x], exact=op == "GlobalMaxPool")


@makes("MaxUnpool")
def unpool(g: Builder, op: str) -> Value | None:
    x = g.input("float32", (1, g.integer(1, 3), 2 * g.integer(1, 4), 2 * g.integer(1, 4)))
    found = g.nodes_("MaxPool", [x], 2, kernel_shape=[2, 2], strides=[2, 2], exact=True)
    return found and g.node(op, found, kernel_shape=[2, 2], strides=[2, 2], exact=True)


@makes("LRN")
def lrn(g: Builder, op: str) -> Value | None:
    return g.node(op, [picture(g, 2, ("float32",))], size=g.pick([1, 3, 5]), alpha=0.1, bias=g.pick([1.0, 2.0]))


@makes("Resize", opset=18)
def resize(g: Builder, op: str) -> Value | None:
    x = picture(g, dtypes=("float32", "float32", "float16", "uint8", "int32"))
    mode = g.pick(["nearest", "nearest", "linear", "cubic"]) if x.is_float else "nearest"
    form: dict[str, object] = {
        "mode": mode,
        "coordinate_transformation_mode": g.pick(
            ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"]
        ),
    }
    if mode == "nearest":
        form["nearest_mode"] = g.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    if mode == "cubic" and x.rank != 4:
        return None
    if mode == "cubic":
        form["exclude_outside"] = g.integer(0, 1)
    elif mode == "linear" and g.maybe(0.2):
        form["antialias"] = 1
    exact = mode == "nearest"
    if x.is_static and g.maybe(0.6):
        sizes = [*x.shape[:2], *(g.pick([1, 2, 3, 4, 5, 7, 8, 10, 13, 14]) for _ in x.shape[2:])]
        return g.node(op, [x, None, None, g.constant(sizes)], exact=exact, **form)
    scales = [1.0, 1.0, *(g.pick([1.0, 2.0, 2.0, 3.0, 0.5, 1.5]) for _ in x.shape[2:])]
    return g.node(op, [x, None, g.constant(scales, "float32")], exact=exact, **form)


@makes("AffineGrid", opset=20)
def affine(g: Builder, op: str) -> Value | None:
    batch = g.integer(1, 2)
    corners = g.integer(0, 1)  # of a single row is left to judgement: docs/fuzzing.md
    size = [batch, 1, g.integer(1 + corners, 5), g.integer(1 + corners, 5)]
    return g.node(op, [g.leaf("float32", (batch, 2, 3)), g.constant(size)], align_corners=corners)


@makes("GridSample", opset=20)
def grid(g: Builder, op: str) -> Value | None:
    batch = g.integer(1, 2)
    x = g.leaf("float32", (batch, *(g.pick([g.integer(1, 6), *g.from_one]) for _ in range(3))))
    places = g.leaf("float32", (batch, g.integer(1, 5), g.integer(1, 5), 2), "unit")
    form = {"mode": g.pick(["linear", "cubic"]), "padding_mode": g.pick(["zeros", "border", "reflection"])}
    return g.node(op, [x, places], align_corners=g.integer(0, 1), **form)


@makes("RoiAlign", opset=16)
def roi(g: Builder, op: str) -> Value | None:
    count = g.integer(1, 4)
    x = g.leaf("float32", (2, g.integer(1, 3), 6, 7))
    low = g.chance.uniform(0, 3, (count, 2))
    boxes = g.constant(np.concatenate([low, low + g.chance.uniform(0.5, 3, (count, 2))], 1).astype(np.float32))
    form = {"output_height": g.integer(1, 3), "output_width": g.integer(1, 3), "sampling_ratio": g.integer(1, 3)}
    form["spatial_scale"] = g.pick([1.0, 0.5])
    form["mode"], form["coordinate_transformation_mode"] = "avg", g.pick(["half_pixel", "output_half_pixel"])
    return g.node(op, [x, boxes, g.index(0, 1, (count,))], **form)


@makes("MaxRoiPool")
def roi_max(g: Builder, op: str) -> Value | None:
    count = g.integer(1, 3)
    x = g.leaf("float32", (1, g.integer(1, 3), 6, 7))
    low = g.chance.integers(0, 4, (count, 2))
    boxes = np.concatenate([np.zeros((count, 1)), low, low + g.chance.integers(0, 3, (count, 2))], 1)
    form = {"pooled_shape": [g.integer(1, 3), g.integer(1, 3)]}
    return g.node(op, [x, g.constant(boxes.astype(np.float32))], exact=True, **form)


@makes("DeformConv", opset=19)
def deformed(g: Builder, op: str) -> Value | None:
    channels, kernel, side = g.integer(1, 3), g.integer(1, 2), g.integer(3, 5)
    x = g.leaf("float32", (1, channels, side, side))
    w = g.drawn("float32", (g.integer(1, 3), channels, kernel, kernel))
    places = prod([kernel, kernel])
    offset = g.leaf("float32", (1, 2 * places, side - kernel + 1, side - kernel + 1), "unit")
    return g.node(op, [x, w, offset], kernel_shape=[kernel, kernel], pads=[0] * 4)
