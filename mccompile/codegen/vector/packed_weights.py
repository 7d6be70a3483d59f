"""Weights of convolutions that are known at run time only: loops that pack them in the workspace, as the compiler packs
constant ones. The macro `packed` of packed_weights.c.j2 prints them."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

from ...base.dims import static
from ...base.marked import named
from ...base.records import dataclass
from ...program.ir import View
from ..loops import index_c
from ..tiles import Range
from .vector_groups import Groups
from .vector_tiles import TileSize

LINE = 16  # floats of a line of a cache


@dataclass(frozen=True)
class Packing:
    """Equal tiles of channels: loops over tiles, and over taps and inputs, and where the lanes come from and go to."""

    header: str  # "" where the tile is the only one
    taps: list[Range]
    lanes: int  # that are packed at once, and behind them so many
    zeros: int
    at: str
    to: str


def packing(w: View, size: TileSize, one_tile: bool = False) -> tuple[Packing, ...]:
    """Of weights [channels, inputs, taps...], those of a tap and an input of all channels of a tile side by side. Where
    taps of neighbouring inputs or channels share lines of a cache, inputs go by blocks, so that a line is read once for
    all taps. `one_tile`: each tile lies where the one before it did, and the kernel goes over tiles."""
    shape, strides = [static(dim) for dim in w.shape], [static(stride) for stride in w.strides]
    loops = [Range(f"k{number}", extent) for number, extent in enumerate((*shape[2:], shape[1]))]
    if prod(shape[2:]) > 1 and shape[1] > LINE and any(1 < abs(stride) < LINE for stride in strides[:2]):
        begin, inputs = named("c0"), loops[-1].counter
        end = f"{begin} + {LINE}"
        end = end if shape[1] % LINE == 0 else f"({end} < {shape[1]} ? {end} : {shape[1]})"
        loops = [Range("c0", shape[1], step=LINE), *loops[:-1], Range(inputs, LINE, begin, end)]
    counters = [f"k{number}" for number in range(len(shape) - 1)]
    at = index_c([strides[0], strides[0], *strides[2:], strides[1]], ["o", "lane", *counters])
    extents = (*shape[2:], shape[1])
    groups, found = Groups(size, shape[0]), []
    for header, (_, _, vectors, last) in zip(groups.headers("o"), groups.parts(), strict=True):
        width, zeros = vectors * size.lanes, size.lanes - last
        steps = [width * prod(extents[number + 1 :]) for number in range(len(extents))]
        to = index_c([0 if one_tile else prod(extents), *steps], ["o", *counters])
        found.append(Packing("" if one_tile else header, loops, width - zeros, zeros, at, to))
    return tuple(found)


def needs_of_weights(packs: bool, count: int) -> Mapping[str, Any]:
    """Of a call that packs so many weights at run time, or has them packed by the compiler."""
    return {"scratch": count * 4, "scratch_align": 64} if packs else {"constant": frozenset({1})}
