"""Elements by positions that a tensor holds."""

from __future__ import annotations

import math

import numpy as np

from ....graph.ir import Invalid, Unsupported
from ..site import Site, converts


@converts("GATHER")
def _gather(site: Site) -> None:
    options = site.options("GatherOptions")
    rank, batch = site.rank(0), options["BatchDims"]
    axis = options["Axis"] % rank if rank else 0
    batch = batch % site.rank(1) if batch < 0 else batch
    x, places = site.stored(0), site.stored(1)
    if batch == 0:
        made = site.op("Gather", x, places, axis=axis)
    else:
        shape, taken = site.shape(0), site.shape(1)
        if not 0 < batch <= min(axis, site.rank(1)) or shape[:batch] != taken[:batch]:
            raise Invalid(f"{batch} batch axes of {list(shape)} and {list(taken)}, with axis {axis}")
        count = int(np.prod(shape[:batch]))
        each = int(np.prod(taken[batch:]))
        site.limited(count * each)
        order = (*range(batch), axis, *range(batch, axis), *range(axis + 1, rank))
        inner = (*shape[batch:axis], *shape[axis + 1 :])
        rows = site.reshape(site.transposed(x, order), count * shape[axis], *inner)
        first = np.repeat(np.arange(count, dtype=np.int64) * shape[axis], each)
        flat = site.op("Add", site.reshape(site.cast(places, "INT64"), -1), site.constant(first))
        made = site.reshape(site.op("Gather", rows, flat, axis=0), *shape[:batch], *taken[batch:], *inner)
        before = axis - batch  # axes of the input between
        of_places = len(taken) - batch
        back = (
            *range(batch),
            *range(batch + of_places, batch + of_places + before),
            *range(batch, batch + of_places),
            *range(batch + of_places + before, batch + of_places + len(inner)),
        )
        made = site.transposed(made, back)
    site.store(site.requantized(made))


@converts("GATHER_ND")
def _gather_nd(site: Site) -> None:
    site.store(site.requantized(site.op("GatherND", site.stored(0), site.cast(site.stored(1), "INT64"))))


@converts("EMBEDDING_LOOKUP")
def _embedding_lookup(site: Site) -> None:
    made = site.op("Gather", site.stored(1), site.stored(0), axis=0)
    if site.out().quantization is None:
        found = site.tensor(1).quantization
        if found is not None and not found.is_one:
            raise Unsupported("its rows have scales of their own")
        made = site.dequantized(made, site.tensor(1))
    site.store(made)


@converts("SCATTER_ND")
def _scatter_nd(site: Site) -> None:
    zero = site.number(0, site.dtype(1))
    whole = site.op("Expand", zero, site.ints(*site.numbers(2)))
    places = site.cast(site.stored(0), "INT64")
    site.store(site.op("ScatterND", whole, places, site.stored(1), reduction="add"))


@converts("DYNAMIC_UPDATE_SLICE")
def _dynamic_update_slice(site: Site) -> None:
    """The rows of the part are scattered to their places; places that would hang over are moved inside."""
    shape, part = site.shape(0), site.shape(1)
    if len(shape) != len(part) or any(n > size for n, size in zip(part, shape, strict=False)):
        raise Invalid(f"{list(part)} does not go into {list(shape)}")
    most = [size - n for n, size in zip(part, shape, strict=True)]
    start = site.op("Max", site.cast(site.stored(2), "INT64"), site.ints(*[0] * len(shape)))
    start = site.op("Min", start, site.ints(*most))
    cut = 1 + max((axis for axis, size in enumerate(most) if size), default=0)  # behind it, rows are whole
    site.limited(cut * math.prod(part[:cut]))
    grid = np.stack(np.meshgrid(*(np.arange(n) for n in part[:cut]), indexing="ij"), axis=-1).astype(np.int64)
    if cut < len(shape):
        start = site.op("Slice", start, site.ints(0), site.ints(cut))
    site.store(site.op("ScatterND", site.stored(0), site.op("Add", site.constant(grid), start), site.stored(1)))


@converts("ONE_HOT")
def _one_hot(site: Site) -> None:
    axis = site.options("OneHotOptions")["Axis"]
    depth = site.scalar(site.numbers(1)[0])
    values = site.op("Concat", site.reshape(site.stored(3), 1), site.reshape(site.stored(2), 1), axis=0)
    rank = site.rank(0) + 1
    axis = axis % rank
    # ONNX counts negative places from the end; here they are nowhere
    places = site.cast(site.stored(0), "INT64")
    beyond = site.constant(np.array(int(site.numbers(1)[0]), np.int64))
    places = site.op("Where", site.op("Less", places, site.constant(np.array(0, np.int64))), beyond, places)
    site.store(site.op("OneHot", places, depth, values, axis=axis))
