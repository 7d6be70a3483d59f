"""What changes shapes and places, not elements."""

from __future__ import annotations

from math import prod

import numpy as np

from ..builder import FLOATS, INTEGERS, Builder, Value
from .registry import makes

ANY = (*FLOATS, *INTEGERS, "bool")
FEW = ("float32", "float32", "int64", "int32", "uint8", "int8", "float16", "bool")


@makes("Transpose")
def transpose(g: Builder, op: str) -> Value | None:
    x = g.any(ANY, (0, 5))
    perm = None if g.maybe(0.2) or x.rank == 0 else g.chance.permutation(x.rank).tolist()
    return g.node(op, [x], perm=perm, exact=True)


@makes("Reshape")
def reshape(g: Builder, op: str) -> Value | None:
    x = g.any(ANY)
    if not x.is_static:  # the free axes first, and the rest in one
        keep = 0
        while keep < x.rank and (g.dim_of(x, keep) is not None):
            keep += 1
        keep = g.integer(0, keep)
        target = [0] * keep + [-1] + ([1] if g.maybe(0.3) else [])
        return g.node(op, [x, g.constant(target)], exact=True)
    rest, shape = x.size, []
    for _ in range(g.integer(0, 3)):
        divisors = [n for n in range(1, rest + 1) if rest % n == 0] or [1]
        shape.append(g.pick(divisors))
        rest //= max(shape[-1], 1)
    shape.append(rest if g.maybe() or x.size == 0 else -1)
    zero = 1 if 0 in shape else None
    return g.node(op, [x, g.constant(shape)], allowzero=zero if g.opset >= 14 else None, exact=True)


@makes("Flatten")
def flatten(g: Builder, op: str) -> Value | None:
    x = g.any(ANY)
    return g.node(op, [x], axis=g.integer(-x.rank, x.rank), exact=True)


@makes("Squeeze")
def squeeze(g: Builder, op: str) -> Value | None:
    x = g.any(ANY, (1, 5))
    ones = [axis for axis in range(x.rank) if x.shape[axis] == 1 and x.is_fixed(axis)]
    if not ones:
        return None
    if x.is_static and g.maybe(0.2):
        return g.node(op, [x], exact=True)
    return g.node(op, [x, g.constant([axis - x.rank * g.integer(0, 1) for axis in g.some(ones)])], exact=True)


@makes("Unsqueeze")
def unsqueeze(g: Builder, op: str) -> Value | None:
    x = g.any(ANY)
    axes = g.some(range(x.rank + 1))[:2]
    return g.node(op, [x, g.constant(axes)], exact=True)


@makes("Slice")
def slice_(g: Builder, op: str) -> Value | None:
    x = g.any(ANY, (1, 5))
    axes = g.some(range(x.rank))
    starts, ends, steps = [], [], []
    for axis in axes:
        size = min(array.shape[axis] for array in x.arrays)
        step = g.pick([1, 1, 1, 2, 3, -1, -1, -2])
        low, high = sorted([g.integer(0, size), g.integer(0, size)])
        if g.maybe(0.25):
            low, high = 0, 1 << 31
        if not x.is_fixed(axis) and g.maybe(0.3):
            low, high = -1, 1 << 31
        if step < 0:
            low, high = (-1, -(1 << 31)) if g.maybe() else (max(high - 1, 0), low - 1 if low else -(1 << 31))
        starts.append(low), ends.append(high), steps.append(step)
    ins = [g.constant(found) for found in (starts, ends, axes, steps)]
    if g.maybe(0.12) and x.is_static and all(step == 1 for step in steps):  # bounds at run time
        at = g.index(0, max(min(x.shape[axes[0]] - 1, 3), 0), (1,))
        end = g.node("Add", [at, g.constant([1])])
        return end and g.node(op, [x, at, end, g.constant(axes[:1])], exact=True, last=True)
    return g.node(
        op,
        [x, *ins[: g.pick([2, 3, 4]) if axes == list(range(len(axes))) and min(steps) == max(steps) == 1 else 4]],
        exact=True,
    )


@makes("Expand")
def expand(g: Builder, op: str) -> Value | None:
    x = g.any(ANY, (0, 3))
    shape = [g.integer(1, 4) if x.shape[a] == 1 and x.is_fixed(a) else 1 for a in range(x.rank)]
    return g.node(op, [x, g.constant([g.integer(1, 3)] * g.integer(0, 1) + shape)], exact=True)


@makes("Concat")
def concat(g: Builder, op: str) -> Value | None:
    x = g.any(ANY, (1, 4))
    axis = g.integer(-x.rank, x.rank - 1)
    at = axis % x.rank

    def fits(v: Value) -> bool:
        if v.dtype != x.dtype or v.rank != x.rank or v.last:
            return False
        return all(
            a.shape[n] == b.shape[n] for a, b in zip(x.arrays, v.arrays, strict=True) for n in range(x.rank) if n != at
        )

    alike = [v for v in g.values if fits(v)]
    parts = [x, *(g.pick(alike) for _ in range(g.integer(0, 3)))]
    dims = g.dims_of(x)
    if dims is not None and g.maybe(0.4):
        parts.append(g.leaf(x.dtype, [g.integer(1, 4) if n == at else dim for n, dim in enumerate(dims)]))
    return g.node(op, [parts[n] for n in g.chance.permutation(len(parts))], axis=axis, exact=True)


@makes("Split")
def split(g: Builder, op: str) -> Value | None:
    x = g.any(ANY, (1, 4))
    axis = g.integer(0, x.rank - 1)
    if not x.is_fixed(axis) or x.shape[axis] < 1:
        return None
    if g.maybe(0.12) and x.is_static:  # sizes at run time
        at = g.input("int64", (1,), "integer", 0, x.shape[axis])
        rest = g.node("Sub", [g.constant([x.shape[axis]]), at])
        sizes = rest and g.node("Concat", [at, rest], axis=0)
        parts = g.nodes_(op, [x, sizes], 2, axis=axis, exact=True, last=True) if sizes else None
        return g.pick(parts) if parts else None
    size, count = x.shape[axis], g.integer(1, min(4, x.shape[axis]))
    if size % count == 0 and g.maybe(0.3):
        found = g.nodes_(op, [x], count, axis=axis, num_outputs=count if g.opset >= 18 else None, exact=True)
    else:
        ends = sorted(g.integer(0, size) for _ in range(count - 1))
        sizes = np.diff([0, *ends, size])
        found = g.nodes_(op, [x, g.constant(sizes)], count, axis=axis, exact=True)
    return g.pick(found) if found else None


@makes("Tile")
def tile(g: Builder, op: str) -> Value | None:
    x = g.any(ANY)
    if g.maybe(0.12) and x.rank and x.is_static and x.size:
        made = g.node(op, [x, g.input("int64", (x.rank,), "integer", 0, 3)], exact=True, last=True)
        if made is not None:
            g.bounds[made.name] = tuple(3 * size for size in x.shape)
        return made
    return g.node(op, [x, g.constant(np.array([g.integer(1, 3) for _ in range(x.rank)], np.int64))], exact=True)


@makes("Pad", opset=18)
def pad(g: Builder, op: str) -> Value | None:
    x = g.any((*FLOATS, *INTEGERS), (1, 4))
    mode = g.pick(["constant", "constant", "constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else [])])
    low = [min(array.shape[axis] for array in x.arrays) for axis in range(x.rank)]
    if mode != "constant" and 0 in low:
        return None
    most = [2 if mode == "constant" else min(2, n - 1 if mode == "reflect" else n) for n in low]
    least = [-1 if mode == "constant" and n > 2 and g.maybe(0.3) else 0 for n in low]
    pads = [g.integer(a, b) if g.maybe(0.6) else 0 for a, b in zip(least * 2, most * 2, strict=True)]
    ins = [x, g.constant(pads)]
    if mode == "constant" and g.maybe(0.6):
        ins.append(g.constant(g.pick([1, 0, 3]), x.dtype))
    return g.node(op, ins, mode=mode, exact=True)


@makes("DepthToSpace", "SpaceToDepth")
def depth(g: Builder, op: str) -> Value | None:
    block = g.integer(1, 3)
    if op == "DepthToSpace":
        dims = (*g.dims(1, 3, (1, 2)), block * block * g.integer(1, 3), *g.dims(2, 40, (1, 2, 3, 5)))
        return g.node(op, [g.leaf(g.pick(FEW), dims)], blocksize=block, mode=g.pick(["DCR", "CRD"]), exact=True)
    dims = (*g.dims(2, 6, (1, 2, 3)), block * g.integer(1, 3), block * g.integer(1, 3))
    return g.node(op, [g.leaf(g.pick(FEW), dims)], blocksize=block, exact=True)


@makes("Trilu", opset=14)
def triangle(g: Builder, op: str) -> Value | None:
    x = g.any(FEW, (2, 4))
    k = [g.constant(g.integer(-2, 2))] if g.maybe(0.7) else []
    return g.node(op, [x, *k], upper=g.integer(0, 1), exact=True)


@makes("ReverseSequence")
def reverse(g: Builder, op: str) -> Value | None:
    time, batch = g.integer(1, 5), g.integer(1, 4)
    turned = g.maybe()
    x = g.leaf(g.pick(FEW), (*((batch, time) if turned else (time, batch)), *g.dims(g.integer(0, 2), 20, (1, 2, 3))))
    return g.node(op, [x, g.index(1, time, (batch,))], batch_axis=1 - turned, time_axis=int(turned), exact=True)


@makes("CenterCropPad", opset=18)
def crop(g: Builder, op: str) -> Value | None:
    x = g.any(FEW, (1, 4))
    axes = g.some(range(x.rank))
    return g.node(op, [x, g.constant([g.integer(1, 7) for _ in axes])], axes=axes, exact=True)


@makes("Col2Im", opset=18)
def columns(g: Builder, op: str) -> Value | None:
    image, block = [g.integer(2, 5), g.integer(2, 5)], [g.integer(1, 2), g.integer(1, 2)]
    count = prod(n - b + 1 for n, b in zip(image, block, strict=True))
    x = g.leaf("float32", (g.integer(1, 2), g.integer(1, 3) * prod(block), count))
    return g.node(op, [x, g.constant(image), g.constant(block)], exact=True)


@makes("Shape", "Size", opset=15)
def shape(g: Builder, op: str) -> Value | None:
    x = g.any(ANY)
    if op == "Size":
        return g.node(op, [x])
    start = g.pick([None, 0, 1, -1])
    return g.node(op, [x], start=start, end=g.pick([None, None, x.rank, -1]))


@makes("Constant")
def constant(g: Builder, op: str) -> Value | None:
    from onnx import numpy_helper

    shape = [g.integer(1, 4) for _ in range(g.integer(0, 3))]
    array = g.drawn(g.pick(["float32", "int64", "uint8"]), shape).arrays[0]
    made = g.node(op, [], value=numpy_helper.from_array(array), exact=True)
    return made


@makes("ConstantOfShape")
def filled(g: Builder, op: str) -> Value | None:
    from onnx import numpy_helper

    value = g.pick([None, numpy_helper.from_array(np.array([g.integer(0, 3)], g.pick(["float32", "int64", "uint8"])))])
    if g.maybe(0.6):
        shape = g.node("Shape", [g.any(ANY, (0, 4))])
    else:
        shape = g.constant(np.array([g.integer(0, 4) for _ in range(g.integer(0, 3))], np.int64))
    return shape and g.node(op, [shape], value=value, exact=True)


@makes("EyeLike")
def eye(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "int64", "int32", "float64"), (2, 2))
    return g.node(op, [x], k=g.integer(-1, 2), dtype=g.pick([None, 1, 7, 6]), exact=True)


@makes("Range")
def counted(g: Builder, op: str) -> Value | None:
    if g.maybe(0.6):
        x = g.any(ANY, (1, 4))
        size = g.node("Shape", [x], start=0, end=1) if g.opset >= 15 else None
        end = size and g.node("Squeeze", [size])
        dtype = g.pick(["int64", "int64", "float32"])
        if end and dtype == "float32":  # as detectors have the cells of a grid
            end = g.node("Cast", [end], to=1)
        return end and g.node(op, [g.constant(0, dtype), end, g.constant(1, dtype)])
    dtype = g.pick(["float32", "int64", "int32"])
    return g.node(op, [g.constant(n, dtype) for n in (g.integer(-2, 2), g.integer(3, 9), g.pick([1, 2]))], exact=True)
