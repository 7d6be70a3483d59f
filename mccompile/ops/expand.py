"""Expand and Tile: elements repeated. Views with stride 0; Tile ends in a copy."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.dims import Dim, static
from ..base.tensor import TensorType, broadcast
from .api import INJECTIVE, Fact, Invalid, Lowering, Operator, Site
from .shapes import fact, fits, moved, sizes


@dataclass(frozen=True)
class Expand(Operator):
    name = "Expand"
    versions = (8, 13)
    fusion = INJECTIVE

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        try:
            shape = broadcast(x.shape, sizes(site, 1, "the shape"))
        except ValueError as problem:
            raise Invalid(str(problem)) from None
        type = TensorType(x.dtype, shape)
        return [moved(site, type, lambda value: np.broadcast_to(value, type.static_shape))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.input(0).broadcast_to(to.type().shape))


@dataclass(frozen=True)
class Tile(Operator):
    name = "Tile"
    versions = (6, 13)
    fusion = INJECTIVE

    def infer(self, site: Site) -> list[Fact]:
        x, repeats = site.type(0), sizes(site, 1, "the repeats")
        if len(repeats) != x.rank:
            raise Invalid(f"{len(repeats)} repeats for {x}")
        type = TensorType(x.dtype, tuple(dim * repeat for dim, repeat in zip(x.shape, repeats, strict=True)))
        value = site.value(0)
        if value is not None and fits(type) and all(isinstance(repeat, int) for repeat in repeats):
            return [fact(type, np.tile(value, [static(repeat) for repeat in repeats]))]
        return [Fact(type)]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        repeats = sizes(to.site, 1, "the repeats")
        cut: list[Dim] = []
        full: list[Dim] = []
        for dim, repeat in zip(x.shape, repeats, strict=True):
            cut += [dim] if repeat == 1 else [1, dim]
            full += [dim] if repeat == 1 else [repeat, dim]
        to.set(0, to.reshape(to.reshape(x, tuple(cut)).broadcast_to(tuple(full)), to.type().shape))
