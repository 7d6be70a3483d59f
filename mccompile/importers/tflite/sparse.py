"""Sparse constants, made dense.

Axes are stored one inside the other in an order of the file's, blocks of elements as further axes. A dense axis has all
its positions; of a sparse one, segments say which positions there are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .flat import Damaged, Reader

_DENSE = 0


def dense(reader: Reader, table: Any, raw: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Raises Damaged. `raw` has the elements that are there."""
    order, blocks = reader.ints(table, "TraversalOrder"), reader.ints(table, "BlockMap")
    levels = reader.tables(table, "DimMetadata")
    rank = len(shape)
    fits = sorted(order) == list(range(len(levels))) and len(levels) == rank + len(blocks)
    if not fits or any(not 0 <= axis < rank for axis in blocks):
        raise Damaged(
            f"the axes {list(order)} and {list(blocks)} of a sparse tensor do not fit the shape {list(shape)}"
        )
    places = np.zeros(1, np.int64)  # of every element so far, among those of its level
    found = np.zeros((len(levels), 1), np.int64)  # its positions, by axis
    sizes = dict.fromkeys(range(rank, rank + len(blocks)), 1)
    for axis, level in zip(order, levels, strict=True):
        if reader.field(level, "Format") == _DENSE:
            size = int(reader.field(level, "DenseSize"))
            _check(size > 0 and places.size * size <= raw.size)
            here = np.tile(np.arange(size), places.size)
            taken = np.repeat(np.arange(places.size), size)
            places = np.repeat(places, size) * size + here
            sizes[axis] = size
        else:
            segments, positions = (_vector(reader, level, name) for name in ("ArraySegments", "ArrayIndices"))
            _check(bool((places + 1 < segments.size).all()) and positions.size <= raw.size)
            counts = segments[places + 1] - segments[places]
            _check(bool((counts >= 0).all()) and int(counts.sum()) <= raw.size)
            taken = np.repeat(np.arange(places.size), counts)
            first = np.repeat(segments[places] - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
            places = first + np.arange(int(counts.sum()))
            _check(bool(((places >= 0) & (places < positions.size)).all()))
            here = positions[places]
        found = found[:, taken]
        found[axis] = here
    where = found[:rank].copy()
    for number, axis in enumerate(blocks):
        where[axis] = where[axis] * sizes[rank + number] + found[rank + number]
    inside = all(bool(((row >= 0) & (row < size)).all()) for row, size in zip(where, shape, strict=True))
    _check(inside and places.size == raw.size)
    made = np.zeros(math.prod(shape), raw.dtype)
    made[np.ravel_multi_index(tuple(where), shape) if rank else 0] = raw
    return made.reshape(shape)


def _vector(reader: Reader, level: Any, name: str) -> np.ndarray:
    """Of one of three widths."""
    kind, union = reader.field(level, f"{name}Type"), reader.field(level, name)
    _, table = reader.options("SparseIndexVector", kind, union)
    if table is None:
        raise Damaged("a sparse tensor has no positions")
    return reader.numbers(table, "Values").astype(np.int64)


def _check(fits: bool) -> None:
    if not fits:
        raise Damaged("the positions of a sparse tensor do not fit its elements")
