"""Pads: elements stay as they are stored."""

from __future__ import annotations

import numpy as np

from ....graph.ir import Invalid
from ..file import SizeOpen
from ..onnx_nodes import first_order, last_order
from ..site import Site, converts


@converts("PAD", "PADV2")
def _pad(site: Site) -> None:
    before, after = _widths(site)
    if site.has(2):
        value = site.reshape(site.stored(2))
    else:
        found = site.tensor(0).quantization
        value = site.constant(np.array(found.zeros[0] if found else 0, site.dtype(0)))
    order = tuple(range(len(before)))
    if len(order) == 4 and not (before[0] or after[0] or before[3] or after[3]):
        order = first_order(4)  # a picture: its pads become part of the convolution behind them
    pads = [widths[axis] for widths in (before, after) for axis in order]
    made = site.op("Pad", site.moved(0, order), site.ints(*pads), value)
    if order == first_order(4):
        made = site.transposed(made, last_order(4))
    site.store(site.requantized(made))


@converts("MIRROR_PAD")
def _mirror_pad(site: Site) -> None:
    """Rows are gathered; ONNX has no mode that repeats the edge."""
    symmetric = site.options("MirrorPadOptions")["Mode"] == 1
    made = site.stored(0)
    for axis, (before, after, size) in enumerate(zip(*_widths(site), site.dims(0), strict=True)):
        if before or after:
            if size is None:
                raise SizeOpen(f"it mirrors axis {axis}, whose size has a range")
            if max(before, after) > size - (not symmetric) or min(before, after) < 0:
                raise Invalid(f"axis {axis} of size {size} is padded by {before} and {after}")
            site.limited(size + before + after)
            places = np.pad(np.arange(size), (before, after), "symmetric" if symmetric else "reflect")
            made = site.op("Gather", made, site.ints(*places), axis=axis)
    site.store(made)


def _widths(site: Site) -> tuple[tuple[int, ...], tuple[int, ...]]:
    widths = site.array(1)
    if widths.shape != (site.rank(0), 2):
        raise Invalid(f"its pads are {list(widths.shape)}, for an input of rank {site.rank(0)}")
    before, after = (tuple(int(number) for number in column) for column in widths.T)
    return before, after
