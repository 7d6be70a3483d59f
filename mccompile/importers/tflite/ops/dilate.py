"""DILATE: elements are moved apart, and others stand between them."""

from __future__ import annotations

from ....graph.ir import Invalid
from ..site import Site, converts


@converts("DILATE")
def _dilate(site: Site) -> None:
    """Each element gets its gap behind it; the gap behind the last one is cut off."""
    shape, times = site.shape(0), site.numbers(1)
    if len(times) != len(shape) or min(times, default=1) < 1:
        raise Invalid(f"{list(shape)} is dilated by {list(times)}")
    made, now = site.stored(0), list(shape)
    for axis, (size, by) in enumerate(zip(shape, times, strict=True)):
        if by == 1 or size < 2:
            continue
        rank = len(now) + 1
        pads = [0] * (2 * rank)
        pads[rank + axis + 1] = by - 1
        made = site.op("Unsqueeze", made, site.ints(axis + 1))
        made = site.op("Pad", made, site.ints(*pads), site.reshape(site.stored(2)))
        now[axis] = size * by
        site.limited(now[axis])
        made = site.op("Slice", site.reshape(made, *now), site.ints(0), site.ints(now[axis] - by + 1), site.ints(axis))
        now[axis] += 1 - by
    site.store(made)
