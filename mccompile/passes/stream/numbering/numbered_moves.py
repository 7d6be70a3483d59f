"""Numbers elementwise kinds, and kinds that move elements: moved elements keep their numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....base.text import write
from ....kinds.concat import Concat
from ....kinds.gather import Gather
from ....kinds.lookup import Lookup
from ....kinds.map import Map
from ....kinds.pad import Pad
from ....kinds.resize import Resize
from .kind_rules import Operands, expression, name_of, numbered
from .numbers import Numbers, joined, mixed, named, of_values, summed


@numbered(Map)
def map_(kind: Map, of: Operands) -> Numbers:
    shape = (max((x.shape[0] for x in of.numbers), default=1), *of.results[0])
    if kind.is_copy:
        return of.numbers[0]
    if not of.numbers:
        return expression(kind.expr, [np.zeros(shape, np.uint64)])
    return expression(kind.expr, [np.broadcast_to(x, (x.shape[0], *shape[1:])) for x in of.numbers])


@numbered(Concat)
def concat(kind: Concat, of: Operands) -> Numbers:
    pushes = max(x.shape[0] for x in of.numbers)
    made = np.empty((pushes, *of.results[0]), np.uint64)
    along, first = np.moveaxis(made, kind.axis + 1, 0), 0
    for number, x in enumerate(of.numbers):
        part = np.moveaxis(np.broadcast_to(x, (pushes, *x.shape[1:])), kind.axis + 1, 0)
        if kind.in_turns:
            along[number :: len(of.numbers)] = part
        else:
            along[first : first + len(part)] = part
            first += len(part)
    return made


@numbered(Pad)
def pad(kind: Pad, of: Operands) -> Numbers:
    x = of.numbers[0]
    around = [(0, 0), *zip(kind.before, kind.after, strict=True)]
    if kind.mode != "constant":
        mode: Any = kind.mode  # ONNX's names are numpy's
        return np.asarray(np.pad(x, around, mode=mode), np.uint64)
    made = np.pad(x, around)
    value = of.numbers[1] if len(of.numbers) > 1 else named("zero").reshape(1)
    outside = np.pad(np.zeros((1, *x.shape[1:]), bool), [(0, 0), *around[1:]], constant_values=True)
    return np.where(outside, value.reshape(-1, *(1 for _ in kind.before)), made)


@numbered(Gather)
def gather(kind: Gather, of: Operands) -> Numbers:
    x, shape = of.numbers[0], of.results[0]
    if all(each is not None for each in of.known[1:]):
        places: list[Any] = [_index(kind, of, axis) for axis in range(x.ndim - 1)]
        return x[(slice(None), *places)]
    followed = [axis for axis in kind.axes if axis >= 0]
    indexed = [place + 1 for place, axis in enumerate(kind.axes) if axis < 0]
    table = summed(x, indexed, f"table {[x.shape[axis] for axis in indexed]}")
    at = [1] * (len(shape) + 1)
    at[0] = x.shape[0]
    for axis in followed:
        at[axis + 1] = shape[axis]
    table = table[(slice(None), *(slice(shape[axis]) for axis in followed))]
    order = sorted(range(len(followed)), key=followed.__getitem__)
    table = table.transpose(0, *(place + 1 for place in order)).reshape(at)
    return joined(write(replace(kind, axes=())), table, *of.numbers[1:])


def _index(kind: Gather, of: Operands, place: int) -> np.ndarray:
    """Where along one axis of x each element of the result is."""
    axis, size, shape = kind.axes[place], of.numbers[0].shape[place + 1], of.results[0]
    if axis >= 0:
        return np.arange(shape[axis]).reshape([-1 if each == axis else 1 for each in range(len(shape))])
    named_there = of.known[-axis]
    assert named_there is not None
    found = np.where(named_there < 0, named_there + (0 if kind.in_range else size), named_there)
    return np.asarray(np.clip(np.broadcast_to(found, shape), 0, max(size - 1, 0)))


@numbered(Lookup)
def lookup(kind: Lookup, of: Operands) -> Numbers:
    x, table = of.numbers
    return joined(name_of(kind), x, summed(table, [1], "table").reshape(-1, *(1 for _ in x.shape[1:])))


@numbered(Resize)
def resize(kind: Resize, of: Operands) -> Numbers | None:
    x = of.numbers[0]
    for number, axis in enumerate(kind.axes):
        positions, weights = of.known[1 + 2 * number], of.known[2 + 2 * number]
        if positions is None or weights is None:
            return None
        x = _resized(x, axis + 1, positions, weights)
    return x


def _resized(x: Numbers, axis: int, positions: np.ndarray, weights: np.ndarray) -> Numbers:
    """A weighted sum of elements along one axis; one of weight 1 is that element."""
    moved = np.moveaxis(x, axis, -1)
    total, single = np.zeros((*moved.shape[:-1], len(positions)), np.uint64), np.zeros_like(moved[..., :0])
    there = weights != 0
    for tap in range(positions.shape[1]):
        part = joined("tap", moved[..., positions[:, tap]], of_values(weights[:, tap]))
        total += np.where(there[:, tap], part, np.uint64(0))
    only = there.argmax(axis=1)
    rows = np.arange(len(positions))
    single = moved[..., positions[rows, only]]
    alone = (there.sum(axis=1) == 1) & (weights[rows, only] == 1)
    return np.moveaxis(np.where(alone, single, mixed(total)), -1, axis)
