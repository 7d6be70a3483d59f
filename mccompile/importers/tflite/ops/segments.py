"""Sums and extremes of rows that belong together, and counting into buckets."""

from __future__ import annotations

import numpy as np

from ....graph.ir import Invalid
from ..site import Site, converts

_UNSORTED = {
    "UNSORTED_SEGMENT_MAX": "max",
    "UNSORTED_SEGMENT_MIN": "min",
    "UNSORTED_SEGMENT_PROD": "mul",
    "UNSORTED_SEGMENT_SUM": "add",
}


@converts("SEGMENT_SUM")
def _segment_sum(site: Site) -> None:
    ids = site.numbers(1)
    _scattered(site, "add", max(ids, default=-1) + 1)


@converts(*_UNSORTED)
def _unsorted(site: Site) -> None:
    (count,) = site.numbers(2)
    _scattered(site, _UNSORTED[site.name], count)


def _scattered(site: Site, reduction: str, count: int) -> None:
    """Rows are collected on what changes nothing; a negative number belongs nowhere."""
    shape, ids = site.shape(0), site.shape(1)
    if count < 1 or shape[: len(ids)] != ids:
        raise Invalid(f"{list(ids)} numbers of segments for an input {list(shape)}, and {count} segments")
    dtype = np.dtype(site.dtype(0))
    lowest, highest = (np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype) for _ in range(2))
    blank = {"add": 0, "mul": 1, "max": lowest.min, "min": highest.max}[reduction]
    inner = shape[len(ids) :]
    places = site.reshape(site.cast(site.stored(1), "INT64"), -1, 1)
    nowhere = site.constant(np.array(count, np.int64))
    places = site.op("Where", site.op("Less", places, site.scalar(0)), nowhere, places)
    whole = site.op("Expand", site.number(blank, dtype), site.ints(count + 1, *inner))
    rows = site.reshape(site.stored(0), -1, *inner)
    made = site.op("ScatterND", whole, places, rows, reduction=reduction)
    site.store(site.op("Slice", made, site.ints(0), site.ints(count), site.ints(0)))


@converts("BUCKETIZE")
def _bucketize(site: Site) -> None:
    bounds = site.options("BucketizeOptions").reals("Boundaries")
    x = site.op("Unsqueeze", site.cast(site.stored(0), "FLOAT32"), site.ints(-1))
    reached = site.op("GreaterOrEqual", x, site.constant(np.array(bounds, np.float32)))
    total = site.op("ReduceSum", site.cast(reached, "INT32"), site.ints(-1), keepdims=0)
    site.store(site.cast(total, site.out().type))
