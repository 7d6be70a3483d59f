"""Elements chosen by truth values, sorting, filling."""

from __future__ import annotations

import numpy as np

from ..site import Site, converts


@converts("SELECT", "SELECT_V2")
def _select(site: Site) -> None:
    condition = site.stored(0)
    if site.name == "SELECT" and site.rank(0) == 1 and site.rank(1) > 1:  # one for each row
        condition = site.reshape(condition, -1, *[1] * (site.rank(1) - 1))
    made = [site.requantized(site.stored(index), index) for index in (1, 2)]
    site.store(site.op("Where", condition, *made))


@converts("WHERE")
def _where(site: Site) -> None:
    x = site.stored(0)
    if site.tensor(0).type != "BOOL":
        x = site.op("Not", site.op("Equal", x, site.number(0, site.dtype(0))))
    places = site.op("Transpose", site.op("NonZero", x), perm=(1, 0))
    site.store(site.cast(places, site.out().type))


@converts("TOPK_V2")
def _top_k(site: Site) -> None:
    values, places = site.ops("TopK", site.stored(0), site.reshape(site.sizes(1), 1), outs=2, axis=-1)
    site.store(values, 0)
    if site.wants(1):
        site.store(site.cast(places, site.out(1).type), 1)


@converts("FILL")
def _fill(site: Site) -> None:
    site.store(site.op("Expand", site.stored(1), site.sizes(0)))


@converts("RANGE")
def _range(site: Site) -> None:
    for index in range(3 if not site.is_resized else 0):
        site.array(index)  # the file names one size, which only these could keep
    site.store(site.op("Range", *(site.reshape(site.stored(index)) for index in range(3))))


@converts("UNIQUE")
def _unique(site: Site) -> None:
    values, _, places = site.ops("Unique", site.stored(0), outs=3, sorted=0)
    site.store(values, 0)
    site.store(site.cast(places, site.out(1).type), 1)


@converts("MATRIX_DIAG")
def _matrix_diag(site: Site) -> None:
    size = site.shape(0)[-1]
    site.limited(size * size)
    rows = site.op("Unsqueeze", site.stored(0), site.ints(-1))
    zero = site.number(0, site.dtype(0))
    site.store(site.op("Where", site.constant(np.eye(size, dtype=np.bool_)), rows, zero))


@converts("MATRIX_SET_DIAG")
def _matrix_set_diag(site: Site) -> None:
    height, width = site.shape(0)[-2:]
    site.limited(height * width)
    diagonal = site.stored(1)
    if height > width:
        pads = [0] * (2 * site.rank(1) - 1) + [height - width]
        diagonal = site.op("Pad", diagonal, site.ints(*pads), site.number(0, site.dtype(0)))
    rows = site.op("Unsqueeze", diagonal, site.ints(-1))
    eye = site.constant(np.eye(height, width, dtype=np.bool_))
    site.store(site.op("Where", eye, rows, site.stored(0)))


@converts("SPARSE_TO_DENSE")
def _sparse_to_dense(site: Site) -> None:
    shape, rank = site.numbers(1), site.rank(0)
    places = site.cast(site.stored(0), "INT64")
    places = site.reshape(places, -1, len(shape)) if rank < 2 else places
    whole = site.op("Expand", site.reshape(site.stored(3)), site.ints(*shape))
    count = site.shape(0)[0] if rank else 1
    values = site.op("Expand", site.stored(2), site.ints(count))
    site.store(site.op("ScatterND", whole, places, values))
