"""What moves, repeats or makes elements without arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges
from ..whole import stored
from .casts import TYPES

_FLOATS = ("float16", "float32", "float64", "bfloat16")


def zeros_of(name: str) -> Any:
    """The numpy type that the judge has for an element type."""
    return np.float64 if name in _FLOATS or name.startswith("float") else object if name == "str" else stored(name)


@judges("Identity")
def identity(at: NodeSite) -> Any:
    return at.operands[0]


@judges("Reshape")
def reshape(at: NodeSite) -> Array:
    x, wanted = at[0], at.ints(1, "shape") or []
    if not at.attr("allowzero", 0):
        wanted = [x.shape[n] if size == 0 else size for n, size in enumerate(wanted)]
    return x.reshape(wanted)


@judges("Flatten")
def flatten(at: NodeSite) -> Array:
    x, axis = at[0], at.attr("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    return x.reshape(rows, int(np.prod(x.shape[axis:], dtype=np.int64)))


@judges("Squeeze")
def squeeze(at: NodeSite) -> Array:
    axes = at.ints(1, "axes")
    return np.squeeze(at[0], None if axes is None else tuple(axes))


@judges("Unsqueeze")
def unsqueeze(at: NodeSite) -> Array:
    return np.expand_dims(at[0], tuple(at.ints(1, "axes") or ()))


@judges("Transpose")
def transpose(at: NodeSite) -> Array:
    return np.transpose(at[0], at.attr("perm"))


@judges("Concat")
def concat(at: NodeSite) -> Array:
    return np.concatenate(at.operands, at.attr("axis", 1))


@judges("Split")
def split(at: NodeSite) -> tuple[Array, ...]:
    x, axis = at[0], at.attr("axis", 0)
    sizes = at.ints(1, "split")
    if sizes is None:
        length, parts = x.shape[axis], at.count
        size = -(-length // parts)
        sizes = [size] * (parts - 1) + [length - size * (parts - 1)]
    return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))


@judges("Slice")
def slices(at: NodeSite) -> Array:
    x = at[0]
    starts, ends = at.ints(1, "starts") or [], at.ints(2, "ends") or []
    axes = at.ints(3, "axes") or list(range(len(starts)))
    steps = at.ints(4, "steps") or [1] * len(starts)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        size = x.shape[axis]
        start, end = (n + size if n < 0 else n for n in (start, end))
        if step > 0:
            chosen = range(min(max(start, 0), size), min(max(end, 0), size), step)
        else:
            chosen = range(min(max(start, 0), size - 1), min(max(end, -1), size - 1), step)
        x = np.take(x, list(chosen), axis) if chosen else np.take(x, np.zeros(0, np.int64), axis)
    return x


@judges("Expand")
def expand(at: NodeSite) -> Array:
    x = at[0]
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(at.ints(1, "shape") or ()))).copy()


@judges("Tile")
def tile(at: NodeSite) -> Array:
    if at.version < 6:
        times = [1] * at[0].ndim
        times[int(at[2].item())] = int(at[1].item())
        return np.tile(at[0], times)
    return np.tile(at[0], at.ints(1, "repeats") or ())


@judges("Pad", "com.microsoft::Pad")
def pad(at: NodeSite) -> Array:
    x = at[0]
    given = at.ints(1, "pads") or at.attr("paddings")
    axes = [axis % x.ndim for axis in (at.ints(3, "axes") or range(x.ndim))]
    begin, end = [0] * x.ndim, [0] * x.ndim
    for n, axis in enumerate(axes):
        begin[axis], end[axis] = given[n], given[n + len(axes)]
    value = np.asarray(at.get(2, at.attr("value", 0)))
    mode = at.attr("mode", "constant")
    for axis in range(x.ndim):
        places = np.arange(-begin[axis], x.shape[axis] + end[axis])
        x = _padded(x, axis, places, mode, value)
    return x


def _padded(x: Array, axis: int, places: Array, mode: str, value: Array) -> Array:
    """What lies at these places of an axis, inside and outside of it."""
    size = x.shape[axis]
    if size == 0 and mode != "constant":
        if len(places):
            raise NoWitness("an empty axis is padded with its elements")
        return x
    if mode == "constant":
        inside = (places >= 0) & (places < size)
        shape = tuple(len(places) if n == axis else length for n, length in enumerate(x.shape))
        fill = value.reshape(-1)[0] if value.size else 0
        found = np.full(shape, fill, x.dtype)
        index: list[Any] = [slice(None)] * x.ndim
        index[axis] = np.flatnonzero(inside)
        found[tuple(index)] = np.take(x, places[inside], axis)
        return found
    if mode == "edge":
        places = np.clip(places, 0, size - 1)
    elif mode == "wrap":
        places = places % size
    else:
        period = max(2 * size - 2, 1)
        places = places % period
        places = np.minimum(places, period - places) if size > 1 else places * 0
    return np.take(x, places, axis)


@judges("DepthToSpace")
def depth_to_space(at: NodeSite) -> Array:
    x, size = at[0], at.attr("blocksize")
    n, c, h, w = x.shape
    if at.attr("mode", "DCR") == "DCR":
        parts = x.reshape(n, size, size, c // size**2, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        parts = x.reshape(n, c // size**2, size, size, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, c // size**2, h * size, w * size)


@judges("SpaceToDepth")
def space_to_depth(at: NodeSite) -> Array:
    x, size = at[0], at.attr("blocksize")
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // size, size, w // size, size).transpose(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * size**2, h // size, w // size)


@judges("ReverseSequence")
def reverse_sequence(at: NodeSite) -> Array:
    x, lengths = at[0], at[1]
    batch, time = at.attr("batch_axis", 1), at.attr("time_axis", 0)
    moved = np.moveaxis(x, (batch, time), (0, 1)).copy()
    for n, length in enumerate(lengths):
        moved[n, :length] = moved[n, :length][::-1]
    return np.moveaxis(moved, (0, 1), (batch, time))


@judges("Trilu", "com.microsoft::Trilu")
def trilu(at: NodeSite) -> Array:
    k = int(np.asarray(at.get(1, 0)).reshape(-1)[0])
    return np.triu(at[0], k) if at.attr("upper", 1) else np.tril(at[0], k)


@judges("CenterCropPad")
def center_crop_pad(at: NodeSite) -> Array:
    x, wanted = at[0], at.ints(1, "shape") or []
    axes = at.attr("axes") or range(x.ndim)
    for axis, size in zip(axes, wanted, strict=True):
        have = x.shape[axis]
        first = (have - size) // 2 if have >= size else -((size - have) // 2)
        x = _padded(x, axis % x.ndim, np.arange(first, first + size), "constant", np.array(0))
    return x


@judges("EyeLike")
def eye_like(at: NodeSite) -> Array:
    name = TYPES[at.attr("dtype")] if at.attr("dtype") else at.type(0)
    return np.eye(at[0].shape[0], at[0].shape[1], k=int(at.attr("k", 0))).astype(zeros_of(name))


@judges("Shape")
def shape(at: NodeSite) -> Array:
    sizes = np.array(at[0].shape, np.int64)
    return sizes[at.attr("start", 0) : at.attr("end")]


@judges("Size")
def size(at: NodeSite) -> Array:
    return np.array(at[0].size, np.int64)


@judges("ConstantOfShape")
def constant_of_shape(at: NodeSite) -> Array:
    value = at.attr("value", np.zeros(1, np.float32)).reshape(-1)[0]
    kind = np.float64 if np.asarray(value).dtype.kind == "f" or np.asarray(value).dtype.name in _FLOATS else None
    return np.full(tuple(at[0].tolist()), value, kind)


@judges("Constant")
def constant(at: NodeSite) -> Any:
    from ..run import widened

    for name, kind in (("value", None), ("sparse_value", None), ("value_float", np.float64),
                       ("value_floats", np.float64), ("value_int", np.int64), ("value_ints", np.int64),
                       ("value_string", object), ("value_strings", object)):  # fmt: skip
        if at.attr(name) is not None:
            return widened(np.asarray(at.attr(name), kind))
    raise NoWitness("a Constant without a value")


@judges("Range", "com.microsoft::Range")
def number_range(at: NodeSite) -> Array:
    start, limit = (np.asarray(at[n]).reshape(())[()] for n in range(2))
    step = np.asarray(at.get(2, 1)).reshape(())[()]
    if isinstance(start, np.floating):
        count = max(int(np.ceil((limit - start) / step)), 0)
    else:
        count = max(-((int(start) - int(limit)) // int(step)), 0) if step else 0
    return (start + np.arange(count) * step).astype(np.asarray(start).dtype)


@judges("OneHot")
def one_hot(at: NodeSite) -> Array:
    depth = int(np.asarray(at[1]).reshape(-1)[0])
    indices = np.asarray(at[0]).astype(np.int64)
    axis = at.attr("axis", -1)
    axis = axis + indices.ndim + 1 if axis < 0 else axis
    indices = np.where(indices < 0, indices + depth, indices)
    places = np.arange(depth).reshape((1,) * axis + (-1,) + (1,) * (indices.ndim - axis))
    return np.where(np.expand_dims(indices, axis) == places, at[2][1], at[2][0])


@judges("com.microsoft::ExpandDims")
def expand_dims(at: NodeSite) -> Array:
    return np.expand_dims(at[0], int(np.asarray(at[1]).reshape(-1)[0]))


@judges("com.microsoft::UnfoldTensor")
def unfold(at: NodeSite) -> Array:
    windows = np.lib.stride_tricks.sliding_window_view(at[0], at.attr("size"), at.attr("dim", -1))
    index = [slice(None)] * windows.ndim
    index[at.attr("dim", -1) % at[0].ndim] = slice(None, None, at.attr("step", 1))
    return windows[tuple(index)]
