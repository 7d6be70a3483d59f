"""Expand and Tile: elements repeated. Views with stride 0; Tile ends in a copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..base.dims import Dim, static, symbol, symbols
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType, broadcast
from .api import INJECTIVE, Fact, Invalid, Lowering, Operator, Site, Unsupported
from .rules.at_run_time import Formula, either, equals, static_count, static_shape
from .rules.elementwise import check_broadcast
from .rules.known_shapes import fact, fits, moved, sizes

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class Expand(Operator):
    versions = (8, 13)
    fusion = INJECTIVE

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if not site.is_known(1):
            declared = self.open_shape(site)
            if len(declared) != max(x.rank, static_count(site.type(1))):
                raise Invalid(f"a shape of {site.type(1)} does not expand {x} to {declared}, which the model declares")
            check_broadcast(x.shape, declared, "the operand")
            return [Fact(TensorType(x.dtype, declared))]
        try:
            shape = broadcast(x.shape, sizes(site, 1, "the shape"))
        except ValueError as problem:
            raise Invalid(str(problem)) from None
        type = TensorType(x.dtype, shape)
        return [moved(site, type, lambda value: np.broadcast_to(value, type.static_shape))]

    def open_shape(self, site: Site) -> Shape:
        """The shape where it is computed at run time: what there is one of may become any number."""
        before = site.shape(0)
        rank = max(len(before), static_count(site.type(1)))
        full = (1,) * (rank - len(before)) + before
        found = site.open_shape(0, "the shape", [None if dim == 1 else dim for dim in full])
        if len(found) != rank:
            return found
        return tuple(new if dim == 1 else dim for new, dim in zip(found, full, strict=True))

    def lower(self, to: Lowering) -> None:
        if not to.site.is_known(1):
            formula = Formula(to)
            asked, before, after = formula.elements(1), to.input(0).shape, to.type().shape
            for place in range(-1, -1 - len(asked), -1):
                stays = -place <= len(before) and before[place] == after[place]
                if stays:
                    formula.require(either([equals(asked[place], after[place]), equals(asked[place], 1)]))
                else:
                    formula.settle(after[place], asked[place])
            formula.check()
        to.set(0, to.input(0).broadcast_to(to.type().shape))

    def gradient(self, back: Backward) -> None:
        back.give(0, back.of())


@dataclass(frozen=True)
class Tile(Operator):
    versions = (6, 13)
    fusion = INJECTIVE

    def repeats(self, site: Site) -> Shape:
        if site.is_known(1):
            return sizes(site, 1, "the repeats")
        before = static_shape(site.type(0))
        declared = site.open_shape(0, "how often it is repeated", [None] * len(before), before)
        if len(before) != len(declared):
            raise Invalid(f"{site.type(0)} is not repeated to {declared}, which the model declares")
        return tuple(self.repeat(size, result, site) for size, result in zip(before, declared, strict=True))

    def repeat(self, size: int, result: Dim, site: Site) -> Dim:
        """How often an axis is repeated that becomes one of this size."""
        fresh = symbols(result) if site.name else ()
        if fresh and size:  # then the number of repeats is the symbol
            (own,) = fresh
            if own.high < size:
                raise Unsupported(f"a bound of {own.high} for an axis of {size}", f"say at least {size}")
            return symbol(own.name, 0, own.high // size)
        if size == 0 or result % size:
            raise Invalid(f"{site.type(0)} is not repeated to {result} along an axis, which the model declares")
        return result // size

    def infer(self, site: Site) -> list[Fact]:
        x, repeats = site.type(0), self.repeats(site)
        if len(repeats) != x.rank:
            raise Invalid(f"{len(repeats)} repeats for {x}")
        type = TensorType(x.dtype, tuple(dim * repeat for dim, repeat in zip(x.shape, repeats, strict=True)))
        value = site.value(0)
        if value is not None and fits(type) and all(isinstance(repeat, int) for repeat in repeats):
            return [fact(type, np.tile(value, [static(repeat) for repeat in repeats]))]
        return [Fact(type)]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        repeats = self.repeats(to.site)
        if not to.site.is_known(1):
            formula = Formula(to)
            for asked, repeat in zip(formula.elements(1), repeats, strict=True):
                formula.settle(repeat, asked)
            formula.check()
        cut: list[Dim] = []
        full: list[Dim] = []
        for dim, repeat in zip(x.shape, repeats, strict=True):
            cut += [dim] if repeat == 1 else [1, dim]
            full += [dim] if repeat == 1 else [repeat, dim]
        to.set(0, to.reshape(to.reshape(x, tuple(cut)).broadcast_to(tuple(full)), to.type().shape))

    def gradient(self, back: Backward) -> None:
        shape = back.shape(0)
        repeats = [static(repeat) for repeat in self.repeats(back.site)]
        cut = [n for pair in zip(repeats, shape, strict=True) for n in pair]
        whole = back.sum(back.reshape(back.of(), cut), range(0, len(cut), 2), keepdims=False)
        back.give(0, back.reshape(whole, shape))
