"""The same elements in another shape or order."""

from __future__ import annotations

import math

import numpy as np

from ....graph.ir import Invalid
from ..site import Site, converts
from .reduce import axes


@converts("RESHAPE")
def _reshape(site: Site) -> None:
    if site.is_resized and not site.has(1):
        shape = site.options("ReshapeOptions").ints("NewShape")
    elif not site.is_resized:
        shape = site.out().shape
    if site.has(1) and (site.is_resized or math.prod(shape) != math.prod(site.shape(0))):
        if not site.is_known(1):
            site.store(site.requantized(site.op("Reshape", site.stored(0), _all_sizes(site, site.parts))))
            return
        shape = site.numbers(1)
    site.store(site.requantized(site.reshape(site.stored(0), *shape, *site.parts)))


def _all_sizes(site: Site, more: tuple[int, ...]) -> str:
    """Operand 1, and sizes of what complex numbers have besides."""
    return site.op("Concat", site.sizes(1), site.ints(*more), axis=0) if more else site.sizes(1)


@converts("SQUEEZE")
def _squeeze(site: Site) -> None:
    axes = site.options("SqueezeOptions").ints("SqueezeDims")
    if any(not -site.rank(0) <= axis < site.rank(0) for axis in axes):
        raise Invalid(f"axes {list(axes)} of an input with {site.rank(0)}")
    axes = tuple(axis % site.rank(0) for axis in axes)  # complex numbers have one more axis
    axes = axes or tuple(axis for axis, size in enumerate(site.shape(0)) if size == 1)
    made = site.op("Squeeze", site.stored(0), site.ints(*axes)) if axes else site.stored(0)
    site.store(site.requantized(made))


@converts("EXPAND_DIMS")
def _expand_dims(site: Site) -> None:
    rank = site.rank(0) + 1
    axes = [axis + rank if axis < 0 else axis for axis in site.numbers(1)]
    site.store(site.requantized(site.op("Unsqueeze", site.stored(0), site.ints(*axes))))


@converts("TRANSPOSE")
def _transpose(site: Site) -> None:
    rank, order = site.rank(0), site.numbers(1)
    order = tuple(axis % rank if rank else axis for axis in order)
    if sorted(order) != list(range(rank)):
        raise Invalid(f"its order of axes is {list(site.numbers(1))}")
    last = (rank,) if site.parts else ()
    site.store(site.requantized(site.op("Transpose", site.stored(0), perm=(*order, *last))))


@converts("TILE")
def _tile(site: Site) -> None:
    site.store(site.op("Tile", site.stored(0), _all_sizes(site, (1,) * len(site.parts))))


@converts("BROADCAST_TO")
def _broadcast_to(site: Site) -> None:
    site.store(site.op("Expand", site.stored(0), _all_sizes(site, site.parts)))


@converts("BROADCAST_ARGS")
def _broadcast_args(site: Site) -> None:
    try:
        shape = np.broadcast_shapes(site.numbers(0), site.numbers(1))
    except ValueError:
        raise Invalid("its shapes do not fit together") from None
    site.store(site.constant(np.array(shape, site.dtype(0))))


@converts("REVERSE_V2")
def _reverse(site: Site) -> None:
    found = axes(site)
    most = [int(np.iinfo(np.int64).min)] * len(found)
    backward = [site.ints(*numbers) for numbers in ([-1] * len(found), most, found, [-1] * len(found))]
    site.store(site.op("Slice", site.stored(0), *backward))


@converts("REVERSE_SEQUENCE")
def _reverse_sequence(site: Site) -> None:
    options = site.options("ReverseSequenceOptions")
    time, batch = options["SeqDim"], options["BatchDim"]
    rank = site.rank(0)
    others = [axis for axis in range(rank) if axis not in (time, batch)]
    order = (batch, time, *others)
    if sorted(order) != list(range(rank)):
        raise Invalid(f"its axes are {time} and {batch}, and there are {rank}")
    x = site.transposed(site.stored(0), order)
    made = site.op("ReverseSequence", x, site.cast(site.stored(1), "INT64"), batch_axis=0, time_axis=1)
    site.store(site.transposed(made, tuple(int(axis) for axis in np.argsort(order))))


@converts("SHAPE")
def _shape(site: Site) -> None:
    if None in site.dims(0):
        site.store(site.cast(site.op("Shape", site.stored(0)), site.out().type))
    else:
        site.store(site.constant(np.array(site.shape(0), site.out_dtype())))


@converts("RANK")
def _rank(site: Site) -> None:
    site.store(site.constant(np.array(site.rank(0), site.out_dtype())))


@converts("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def _blocks(site: Site) -> None:
    to_depth = site.name == "SPACE_TO_DEPTH"
    size = site.options("SpaceToDepthOptions" if to_depth else "DepthToSpaceOptions")["BlockSize"]
    if site.rank(0) != 4 or size < 1:
        raise Invalid(f"blocks of {size} in an input {list(site.shape(0))}")
    n, h, w, c = site.shape(0)
    if to_depth:
        cut, order = (n, h // size, size, w // size, size, c), (0, 1, 3, 2, 4, 5)
        whole = (n, h // size, w // size, size * size * c)
    else:
        cut, order = (n, h, w, size, size, c // size**2), (0, 1, 3, 2, 4, 5)
        whole = (n, h * size, w * size, c // size**2)
    made = site.reshape(site.transposed(site.reshape(site.stored(0), *cut), order), *whole)
    site.store(site.requantized(made))


@converts("SPACE_TO_BATCH_ND")
def _space_to_batch(site: Site) -> None:
    blocks, pads, shape = site.numbers(1), site.array(2), site.shape(0)
    count = len(blocks)
    if len(shape) <= count or pads.shape != (count, 2) or min(blocks, default=1) < 1:
        raise Invalid(f"blocks {list(blocks)} and pads {pads.tolist()} for an input {list(shape)}")
    before, after = ([0, *(int(number) for number in column), *[0] * (len(shape) - count - 1)] for column in pads.T)
    found = site.tensor(0).quantization
    zero = site.constant(np.array(found.zeros[0] if found else 0, site.dtype(0)))
    x = site.op("Pad", site.stored(0), site.ints(*before, *after), zero)
    sizes = [a + n + b for a, n, b in zip(before, shape, after, strict=True)]
    inner = [number for size, block in zip(sizes[1:], blocks, strict=False) for number in (size // block, block)]
    rest = sizes[count + 1 :]
    cut = (shape[0], *inner, *rest)
    order = (
        *range(2, 2 * count + 2, 2),
        0,
        *range(1, 2 * count + 1, 2),
        *range(2 * count + 1, 2 * count + 1 + len(rest)),
    )
    whole = (shape[0] * math.prod(blocks), *inner[::2], *rest)
    site.store(site.requantized(site.reshape(site.transposed(site.reshape(x, *cut), order), *whole)))


@converts("BATCH_TO_SPACE_ND")
def _batch_to_space(site: Site) -> None:
    blocks, crops, shape = site.numbers(1), site.array(2), site.shape(0)
    count, all_blocks = len(blocks), math.prod(site.numbers(1))
    if len(shape) <= count or crops.shape != (count, 2) or min(blocks, default=1) < 1 or shape[0] % all_blocks:
        raise Invalid(f"blocks {list(blocks)} and crops {crops.tolist()} for an input {list(shape)}")
    rest = shape[count + 1 :]
    cut = (*blocks, shape[0] // all_blocks, *shape[1:])
    inner = [axis for place in range(count) for axis in (count + 1 + place, place)]
    order = (count, *inner, *range(2 * count + 1, 2 * count + 1 + len(rest)))
    sizes = [size * block for size, block in zip(shape[1:], blocks, strict=False)]
    made = site.reshape(site.transposed(site.reshape(site.stored(0), *cut), order), cut[count], *sizes, *rest)
    starts = [int(number) for number in crops[:, 0]]
    ends = [size - int(number) for size, number in zip(sizes, crops[:, 1], strict=True)]
    made = site.op("Slice", made, site.ints(*starts), site.ints(*ends), site.ints(*range(1, count + 1)))
    site.store(site.requantized(made))
