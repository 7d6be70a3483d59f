"""What reads and writes at places that are data."""

from __future__ import annotations

import numpy as np

from ..builder import FLOATS, INTEGERS, Builder, Value
from .registry import makes

ANY = (*FLOATS, *INTEGERS, "bool")
FEW = ("float32", "float32", "float64", "int32", "int64", "uint8")


def least(x: Value, axis: int) -> int:
    return min(array.shape[axis] for array in x.arrays)


@makes("Gather")
def gather(g: Builder, op: str) -> Value | None:
    x = g.any(ANY, (1, 4))
    axis = g.integer(-x.rank, x.rank - 1)
    n = least(x, axis)
    if not n:
        return None
    dims = g.dims(g.integer(0, 2), 12, (1, 2, 3, 4))
    low = 0 if not x.is_fixed(axis) and g.maybe(0.7) else -n
    return g.node(op, [x, g.index(low, n - 1, dims, g.pick(["int64", "int32"]))], axis=axis, exact=True)


@makes("GatherElements")
def gather_elements(g: Builder, op: str) -> Value | None:
    x = g.any(ANY, (1, 3))
    axis, dims = g.integer(-x.rank, x.rank - 1), g.dims_of(x)
    n = least(x, axis)
    if not n or dims is None:
        return None
    wanted = [g.integer(1, 3) if a == axis % x.rank else d for a, d in enumerate(dims)]
    return g.node(op, [x, g.index(-n if x.is_fixed(axis) else 0, n - 1, wanted)], axis=axis, exact=True)


@makes("GatherND")
def gather_nd(g: Builder, op: str) -> Value | None:
    x = g.any(ANY, (1, 4))
    batch = 0
    dims = g.dims_of(x)
    if dims is None or not x.size:
        return None
    if x.rank > 1 and x.is_fixed(0) and g.maybe(0.3):
        batch = 1
    depth = g.integer(1, x.rank - batch)
    ends = [least(x, axis) for axis in range(batch, batch + depth)]
    if not min(ends):
        return None
    return g.node(
        op, [x, g.index(0, min(ends) - 1, (*dims[:batch], g.integer(1, 3), depth))], batch_dims=batch, exact=True
    )


@makes("ScatterElements", opset=18)
def scatter_elements(g: Builder, op: str) -> Value | None:
    x = g.any(FEW, (1, 3))
    if not x.is_static or not x.size:
        return None
    axis = g.integer(0, x.rank - 1)
    shape = [g.integer(1, n) for n in x.shape]
    how = g.pick([None, None, "add", "mul", "max", "min"])
    index = _places(g, x.shape[axis], shape, axis, how is None)
    return g.node(op, [x, index, g.leaf(x.dtype, shape)], axis=axis, reduction=how, exact=how != "mul")


def _places(g: Builder, n: int, shape: list[int] | tuple[int, ...], axis: int, once: bool) -> Value:
    """Indices along an axis; each place once where the order of writes would count."""
    if not once:
        return g.index(-n, n - 1, shape)
    moved = [size for a, size in enumerate(shape) if a != axis]
    rows = [g.chance.permutation(n)[: shape[axis]] for _ in range(int(np.prod(moved)))]
    return g.constant(np.moveaxis(np.array(rows, np.int64).reshape(*moved, shape[axis]), -1, axis))


@makes("ScatterND", opset=18)
def scatter_nd(g: Builder, op: str) -> Value | None:
    x = g.any(FEW, (1, 3))
    if not x.is_static or not x.size:
        return None
    count, depth = g.integer(1, x.shape[0]), 1
    how = g.pick([None, None, "add", "max", "min"])
    places = g.constant(g.chance.permutation(x.shape[0])[:count].reshape(count, depth))
    if how:
        places = g.index(0, x.shape[0] - 1, (count, depth))
    return g.node(op, [x, places, g.leaf(x.dtype, (count, *x.shape[1:]))], reduction=how, exact=True)


@makes("TensorScatter", opset=24)
def tensor_scatter(g: Builder, op: str) -> Value | None:
    """Rows of a cache, one after the other or around its end."""
    rank, batch, room = g.integer(3, 4), g.integer(1, 3), g.integer(2, 7)
    axis, new, dtype = g.integer(1, rank - 1), g.integer(1, room), g.pick(["float32", "float16", "int8", "int64"])
    past = [batch, *(g.integer(1, 3) for _ in range(rank - 1))]
    past[axis] = room
    rows = [*past[:axis], new, *past[axis + 1 :]]
    circles = g.maybe()
    at = [g.index(0, room - (1 if circles else new), (batch,))] if g.maybe(0.7) else []
    form = {"axis": axis - rank * g.integer(0, 1), "mode": "circular" if circles else g.pick([None, "linear"])}
    return g.node(op, [g.leaf(dtype, past), g.leaf(dtype, rows), *at], exact=True, **form)


@makes("OneHot")
def one_hot(g: Builder, op: str) -> Value | None:
    depth = g.integer(1, 6)
    index = g.index(-depth, depth, g.dims(g.integer(0, 2), 20, (1, 2, 3, 5)), g.pick(["int64", "int32"]))
    values = g.drawn(g.pick(["float32", "int64"]), (2,))
    if g.maybe(0.12):
        index = g.index(-1, 1, (g.integer(1, 5),))
        made = g.node(
            op, [index, g.input("int64", (), "integer", 1, 6), values], axis=g.integer(-1, 1), exact=True, last=True
        )
        return _of_data(g, made, 6)
    return g.node(op, [index, g.constant(depth), values], axis=g.integer(-1, index.rank), exact=True)


@makes("Compress")
def compress(g: Builder, op: str) -> Value | None:
    x = g.any(FEW, (1, 3))
    axis = g.pick([None, g.integer(0, x.rank - 1)])
    if not x.is_static:
        return None
    length = x.size if axis is None else x.shape[axis]
    if not length:
        return None
    # A condition longer than the axis is left to judgement: docs/fuzzing.md
    return g.node(op, [x, g.drawn("bool", (g.integer(1, length),))], axis=axis, exact=True)


@makes("NonZero")
def non_zero(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "int64", "bool", "uint8"), (1, 3), exact=True)
    if not x.is_static:
        return None
    return _of_data(g, g.node(op, [x], last=True), x.size)


@makes("Unique")
def unique(g: Builder, op: str) -> Value | None:
    x = g.any(("float32", "int64", "int8"), (1, 1), exact=True)
    if not x.is_static or not x.size:
        return None
    found = g.nodes_(op, [x], 4, sorted=1, last=True)
    return _of_data(g, found[0], x.size) if found else None


@makes("NonMaxSuppression")
def suppressed(g: Builder, op: str) -> Value | None:
    count, classes = g.integer(1, 6), g.integer(1, 2)
    boxes = g.leaf("float32", (1, count, 4), "exact")
    ins = [boxes, g.leaf("float32", (1, classes, count), "exact"), g.constant([g.integer(1, 3)])]
    ins += [g.constant([0.5], "float32"), g.constant([0.25], "float32")][: g.integer(0, 2)]
    return _of_data(g, g.node(op, ins, center_point_box=g.integer(0, 1), last=True), 3 * classes)


def _of_data(g: Builder, made: Value | None, most: int) -> Value | None:
    """Its size follows from data: a bound says how much room there must be."""
    if made is not None:
        g.bounds[made.name] = (max(most, 1),)
    return made
