"""Weights of convolutions that are known at run time only: loops that pack them in the workspace, as the compiler packs
constant ones. The macro `packed` of packed_weights.c.j2 prints them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from ...base.dims import static
from ...program.ir import View
from ..loops import index_c
from ..tiles import Range
from .vector_groups import Groups
from .vector_tiles import TileSize


@dataclass(frozen=True)
class Packing:
    """Equal tiles of channels, one after the other from `begin` on."""

    begin: int
    header: str
    taps: list[Range]
    lanes: int  # that are packed at once, and behind them so many
    zeros: int
    at: str


def packing(w: View, size: TileSize) -> tuple[Packing, ...]:
    """Of weights [channels, inputs, taps...], those of a tap and an input of all channels of a tile side by side."""
    shape, strides = [static(dim) for dim in w.shape], [static(stride) for stride in w.strides]
    loops = [Range(f"k{number}", extent) for number, extent in enumerate((*shape[2:], shape[1]))]
    counters = ["o", "lane", *(each.counter for each in loops)]
    at = index_c([strides[0], strides[0], *strides[2:], strides[1]], counters)
    groups, found = Groups(size, shape[0]), []
    for header, (begin, _, vectors, last) in zip(groups.headers("o"), groups.parts(), strict=True):
        zeros = size.lanes - last
        found.append(Packing(begin * prod(shape[1:]), header, loops, vectors * size.lanes - zeros, zeros, at))
    return tuple(found)


def needs_of_weights(packs: bool, count: int) -> Mapping[str, Any]:
    """Of a call that packs so many weights at run time, or has them packed by the compiler."""
    return {"scratch": count * 4, "scratch_align": 64} if packs else {"constant": frozenset({1})}
