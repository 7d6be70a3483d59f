"""Tensors put together and taken apart."""

from __future__ import annotations

from ....graph.ir import Invalid
from ..site import Site, converts
from .reduce import axes


@converts("CONCATENATION")
def _concat(site: Site) -> None:
    options = site.options("ConcatenationOptions")
    parts, axis = [site.requantized(site.stored(n), n) for n in range(site.count)], options["Axis"]
    made = site.op("Concat", *parts, axis=axis)
    if options["FusedActivationFunction"]:
        real = site.dequantized(made, site.out())
        made = site.quantized(site.activated(real, options["FusedActivationFunction"]), site.out())
    site.store(made)


@converts("PACK")
def _pack(site: Site) -> None:
    axis = site.options("PackOptions")["Axis"]
    place = site.ints(axis)
    parts = [site.op("Unsqueeze", site.requantized(site.stored(n), n), place) for n in range(site.count)]
    site.store(site.op("Concat", *parts, axis=axis))


@converts("UNPACK")
def _unpack(site: Site) -> None:
    options = site.options("UnpackOptions")
    axis, count = options["Axis"], len(site.operator.outputs)
    parts = site.ops("Split", site.stored(0), site.ints(*[1] * count), outs=count, axis=axis)
    for number, part in enumerate(parts):
        site.store(site.requantized(site.op("Squeeze", part, site.ints(axis)), 0, number), number)


@converts("SPLIT")
def _split(site: Site) -> None:
    (axis,) = _axis(site, 0, 1)
    count, size = len(site.operator.outputs), site.size(1, axis)
    if size % count:
        raise Invalid(f"axis {axis} of size {size} is split into {count}")
    _parts(site, 1, axis, [size // count] * count)


@converts("SPLIT_V")
def _split_v(site: Site) -> None:
    (axis,) = axes(site, 2)
    sizes, size = list(site.numbers(1)), site.size(0, axis)
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = size - sum(sizes) - 1
    _parts(site, 0, axis, sizes)


def _parts(site: Site, index: int, axis: int, sizes: list[int]) -> None:
    if min(sizes) < 0 or sum(sizes) != site.size(index, axis) or len(sizes) != len(site.operator.outputs):
        raise Invalid(f"axis {axis} of {list(site.dims(index))} is split into {sizes}")
    parts = site.ops("Split", site.stored(index), site.ints(*sizes), outs=len(sizes), axis=axis)
    for number, part in enumerate(parts):
        site.store(site.requantized(part, index, number), number)


def _axis(site: Site, index: int, of: int) -> tuple[int]:
    (axis,) = site.numbers(index)
    rank = site.rank(of)
    if not -rank <= axis < rank:
        raise Invalid(f"its axis is {axis}, and there are {rank}")
    return (axis % rank,)
