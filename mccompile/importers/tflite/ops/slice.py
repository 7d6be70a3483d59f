"""Parts of tensors by position."""

from __future__ import annotations

import numpy as np

from ....graph.ir import Invalid, Unsupported
from ..site import Site, converts

_FAR = 1 << 62


@converts("SLICE")
def _slice(site: Site) -> None:
    axes = site.ints(*range(site.rank(0)))
    if site.is_known(1) and site.is_known(2):
        starts = site.numbers(1)
        ends = [start + size if size >= 0 else _FAR for start, size in zip(starts, site.numbers(2), strict=True)]
        begin, end = site.ints(*starts), site.ints(*ends)
    else:
        if not site.is_known(2) or min(site.numbers(2), default=0) < 0:
            raise Unsupported("the sizes of what it cuts out are computed at run time")
        begin = site.cast(site.stored(1), "INT64")
        end = site.op("Add", begin, site.ints(*site.numbers(2)))
    site.store(site.requantized(site.op("Slice", site.stored(0), begin, end, axes)))


@converts("STRIDED_SLICE")
def _strided_slice(site: Site) -> None:
    steps = site.numbers(3)
    if 0 in steps:
        raise Invalid("a step is 0")
    cut = _known if site.is_known(1) and site.is_known(2) else _at_run_time
    site.store(site.requantized(cut(site, steps)))


def _known(site: Site, steps: tuple[int, ...]) -> str:
    """Positions are numbers: what is cut out, then its shape."""
    options = site.options("StridedSliceOptions")
    masks = {name: options[f"{name}Mask"] for name in ("Begin", "End", "Ellipsis", "NewAxis", "ShrinkAxis")}
    begins, ends, shape = site.numbers(1), site.numbers(2), site.dims(0)
    if not len(begins) == len(ends) == len(steps):
        raise Invalid(f"it begins at {list(begins)}, ends at {list(ends)}, with steps {list(steps)}")
    new = sum(bool(masks["NewAxis"] >> place & 1) for place in range(len(begins)))
    cut: list[tuple[int, int, int, int]] = []  # start, end, axis, step
    result: list[int | None] = []
    axis = 0
    for place, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        bit = 1 << place
        if masks["Ellipsis"] & bit:
            many = len(shape) - (len(begins) - new - 1)
            result += shape[axis : axis + max(many, 0)]
            axis += max(many, 0)
            continue
        if masks["NewAxis"] & bit:
            result.append(1)
            continue
        if axis >= len(shape):
            raise Invalid(f"it cuts {len(begins)} axes of {list(shape)}")
        size = shape[axis]
        if size is None:
            end = begin + end if options["Offset"] else end
            if masks["ShrinkAxis"] & bit:
                cut.append((begin, begin + 1 if begin != -1 else _FAR, axis, 1))
            else:
                first, last = (0, _FAR) if step > 0 else (_FAR, -_FAR)
                bounds = first if masks["Begin"] & bit else begin, last if masks["End"] & bit else end
                cut.append((*bounds, axis, step))
                result.append(None)
        elif masks["ShrinkAxis"] & bit:
            start = begin + size if begin < 0 else begin
            if not 0 <= start < size:
                raise Invalid(f"it takes element {begin} of axis {axis} of size {size}")
            cut.append((start, start + 1, axis, 1))
        else:
            end = begin + end if options["Offset"] else end
            given = slice(None if masks["Begin"] & bit else begin, None if masks["End"] & bit else end, step)
            start, stop, step = given.indices(size)
            cut.append((start, stop if stop >= 0 else -_FAR, axis, step))
            result.append(len(range(start, stop, step)))
        axis += 1
    result += shape[axis:]
    made = site.stored(0)
    if cut:
        made = site.op("Slice", made, *(site.ints(*numbers) for numbers in zip(*cut, strict=True)))
    if None in result and not masks["ShrinkAxis"] and not new:
        return made  # the rank is the same
    return site.reshaped(made, result)


def _at_run_time(site: Site, steps: tuple[int, ...]) -> str:
    """Positions are computed; what is cut out has the shape that the file says."""
    options = site.options("StridedSliceOptions")
    if options["EllipsisMask"] or options["NewAxisMask"] or options["Offset"]:
        raise Unsupported("its positions are computed at run time, with new axes or an ellipsis")
    count, shrink = len(steps), options["ShrinkAxisMask"]

    def bounds(index: int, mask: int, otherwise: tuple[int, int]) -> str:
        given = site.cast(site.stored(index), "INT64")
        masked = np.array([bool(mask >> place & 1) for place in range(count)])
        if not masked.any():
            return given
        whole = [otherwise[step < 0] for step in steps]
        return site.op("Where", site.constant(masked), site.ints(*whole), given)

    begin = bounds(1, options["BeginMask"] & ~shrink, (0, _FAR))
    end = bounds(2, options["EndMask"] & ~shrink, (_FAR, -_FAR))
    shrunk = np.array([bool(shrink >> place & 1) for place in range(count)])
    if shrunk.any():
        next_one = site.op("Add", begin, site.ints(*[1] * count))
        last = site.op("Equal", begin, site.ints(*[-1] * count))
        next_one = site.op("Where", last, site.ints(*[_FAR] * count), next_one)
        end = site.op("Where", site.constant(shrunk), next_one, end)
    made = site.op("Slice", site.stored(0), begin, end, site.ints(*range(count)), site.ints(*steps))
    if site.is_resized and not shrunk.any():
        return made
    return site.reshape(made, *site.out().shape)
