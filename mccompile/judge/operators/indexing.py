"""What chooses elements by indices, and what finds indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..rules import Array, NodeSite, NoWitness, judges


def from_end(indices: Array, size: int) -> Array:
    """Negative ones count from the end; others outside are errors by the standard."""
    indices = indices.astype(np.int64)
    found = np.where(indices < 0, indices + size, indices)
    if np.any((found < 0) | (found >= size)):
        raise NoWitness("an index lies outside of its axis")
    return found


@judges("Gather")
def gather(at: NodeSite) -> Array:
    axis = at.attr("axis", 0)
    return np.take(at[0], from_end(at[1], at[0].shape[axis]), axis)


@judges("GatherElements")
def gather_elements(at: NodeSite) -> Array:
    axis = at.attr("axis", 0) % at[0].ndim
    return _at_elements(at[0], at[1], axis)[0]


def _at_elements(x: Array, indices: Array, axis: int) -> tuple[Array, tuple[Array, ...]]:
    places = list(np.indices(indices.shape))
    places[axis] = from_end(indices, x.shape[axis])
    return x[tuple(places)], tuple(places)


@judges("GatherND", "com.microsoft::GatherND")
def gather_nd(at: NodeSite) -> Array:
    x, indices, skip = at[0], at[1], at.attr("batch_dims", 0)
    depth = indices.shape[-1]
    batch = np.indices(indices.shape[:-1])[:skip]
    named = [from_end(indices[..., n], x.shape[skip + n]) for n in range(depth)]
    return np.asarray(x[(*batch, *named)])


_REDUCTIONS: dict[str, Any] = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def _scatter(x: Array, places: tuple[Array, ...], updates: Array, reduction: str) -> Array:
    found = x.copy()
    if reduction == "none":
        found[places] = updates
    else:
        _REDUCTIONS[reduction].at(found, places, updates)
    return found


@judges("ScatterElements", "Scatter")
def scatter_elements(at: NodeSite) -> Array:
    axis = at.attr("axis", 0) % at[0].ndim
    return _scatter(at[0], _at_elements(at[0], at[1], axis)[1], at[2], at.attr("reduction", "none"))


@judges("ScatterND")
def scatter_nd(at: NodeSite) -> Array:
    x, indices = at[0], at[1]
    places = tuple(from_end(indices[..., n], x.shape[n]) for n in range(indices.shape[-1]))
    return _scatter(x, places, at[2], at.attr("reduction", "none"))


@judges("TensorScatter")
def tensor_scatter(at: NodeSite) -> Array:
    past, update = at[0], at[1]
    axis = at.attr("axis", -2) % past.ndim
    starts = at.get(2, np.zeros(past.shape[0], np.int64))
    found = np.moveaxis(past, axis, 1).copy()
    given = np.moveaxis(update, axis, 1)
    for batch, start in enumerate(starts):
        places = int(start) + np.arange(given.shape[1])
        places = places % found.shape[1] if at.attr("mode", "linear") == "circular" else places
        found[batch, places] = given[batch]
    return np.moveaxis(found, 1, axis)


@judges("Compress")
def compress(at: NodeSite) -> Array:
    x, axis = at[0], at.attr("axis")
    flat = x.reshape(-1) if axis is None else x
    chosen = np.flatnonzero(at[1].astype(bool))
    return np.take(flat, chosen, 0 if axis is None else axis)


@judges("NonZero")
def non_zero(at: NodeSite) -> Array:
    return np.array(np.nonzero(np.atleast_1d(at[0])), np.int64).reshape(max(at[0].ndim, 0) or 1, -1)


@judges("ArgMax", "ArgMin")
def arg_extreme(at: NodeSite) -> Array:
    x, axis = at[0], at.attr("axis", 0) % max(at[0].ndim, 1)
    find = np.argmax if at.node.op == "ArgMax" else np.argmin
    last = at.attr("select_last_index", 0)
    found = x.shape[axis] - 1 - find(np.flip(x, axis), axis) if last else find(x, axis)
    return np.asarray(np.expand_dims(found, axis) if at.attr("keepdims", 1) else found, np.int64)


@judges("TopK")
def top_k(at: NodeSite) -> tuple[Array, Array]:
    x, axis = at[0], at.attr("axis", -1)
    k = (at.ints(1, "k") or [0])[0]
    if x.dtype.kind == "f" and np.isnan(x).any():
        raise NoWitness("ONNX does not say where NaN is sorted")
    # "Given two equivalent values, this operator uses the indices along the axis as a tiebreaker."
    keys = x if not at.attr("largest", 1) else -x if x.dtype.kind == "f" else ~x
    order = np.take(np.argsort(keys, axis, kind="stable"), np.arange(k), axis)
    return np.take_along_axis(x, order, axis), order.astype(np.int64)


@judges("Hardmax")
def hardmax(at: NodeSite) -> Array:
    x = at[0]
    axis = at.attr("axis", -1 if at.version >= 13 else 1)
    flat = x if at.version >= 13 else x.reshape(int(np.prod(x.shape[: axis % x.ndim])), -1)
    axis = axis if at.version >= 13 else 1
    first = np.expand_dims(np.argmax(flat, axis), axis)
    places = np.arange(flat.shape[axis]).reshape([-1 if n == axis % flat.ndim else 1 for n in range(flat.ndim)])
    return (places == first).astype(np.float64).reshape(x.shape)


@judges("Unique", "com.microsoft::Unique")
def unique(at: NodeSite) -> tuple[Array, ...]:
    axis = at.attr("axis")
    x = at[0].reshape(-1) if axis is None else at[0]
    rows = np.moveaxis(x, axis or 0, 0)
    keys = [tuple(row.reshape(-1).tolist()) for row in rows]
    firsts: dict[Any, int] = {}
    for n, key in enumerate(keys):
        firsts.setdefault(key, n)
    is_sorted = at.attr("sorted", 1) and at.node.domain == ""
    order = sorted(firsts) if is_sorted else list(firsts)
    number = {key: n for n, key in enumerate(order)}
    inverse = np.array([number[key] for key in keys], np.int64)
    chosen = np.array([firsts[key] for key in order], np.int64)
    counts = np.bincount(inverse, minlength=len(order)).astype(np.int64)
    made = np.moveaxis(rows[chosen], 0, axis or 0)
    return (made, inverse, counts) if at.node.domain else (made, chosen, inverse, counts)


@judges("NonMaxSuppression")
def non_max_suppression(at: NodeSite) -> Array:
    boxes, scores = at[0], at[1]
    most = int(np.asarray(at.get(2, 0)).reshape(-1)[0])
    overlap, least = (float(np.asarray(at.get(n, d)).reshape(-1)[0]) for n, d in ((3, 0.0), (4, -np.inf)))
    centered = bool(at.attr("center_point_box", 0))
    found: list[list[int]] = []
    for batch, score in enumerate(scores):
        corners = _corners(boxes[batch], centered)
        for kind, column in enumerate(score):
            kept: list[int] = []
            for n in np.argsort(-column, kind="stable"):
                if len(kept) >= most or (at.has(4) and not column[n] > least):
                    break
                if all(_overlap(corners[n], corners[other]) <= overlap for other in kept):
                    kept.append(int(n))
            found += [[batch, kind, n] for n in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(boxes: Array, centered: bool) -> Array:
    if centered:
        x, y, w, h = boxes.T
        return np.stack([y - h / 2, x - w / 2, y + h / 2, x + w / 2], 1)
    a, b = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(a, b), np.maximum(a, b)], 1)


def _overlap(a: Array, b: Array) -> float:
    """The area of what two boxes share, over that of both together."""
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2])
    shared = float(np.prod(np.maximum(sides, 0)))
    total = float(np.prod(a[2:] - a[:2]) + np.prod(b[2:] - b[:2])) - shared
    return shared / total if shared > 0 else 0.0
