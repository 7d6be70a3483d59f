"""Slice: every step-th element between bounds that are known at compile time. A view."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..base.dims import Dim, bounds, maximum, minimum
from ..base.tensor import TensorType
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .shapes import FIX_DIMENSIONS, moved

Cut = tuple[int, Dim, Dim, int]  # axis, first element, how many, step


@dataclass(frozen=True)
class Slice(Operator):
    name = "Slice"
    versions = (1, 10, 11, 13)
    fusion = INJECTIVE

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        for position, name in enumerate(("starts", "ends", "axes"), 1):
            node.attribute_to_input(name, position)
        return make(cls, node)

    def cuts(self, site: Site) -> list[Cut]:
        x = site.type(0)
        starts, ends = site.known(1, "the starts"), site.known(2, "the ends")
        axes = site.known_ints(3, "the axes") if site.has(3) else list(range(len(starts)))
        steps = site.known_ints(4, "the steps") if site.has(4) else [1] * len(starts)
        if not len(starts) == len(ends) == len(axes) == len(steps):
            raise Invalid(f"{len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
        normal = [normal_axis(axis, x.rank) for axis in axes]
        if len(set(normal)) != len(normal):
            raise Invalid(f"an axis is named twice in {axes}")
        if 0 in steps:
            raise Invalid("a step is 0")
        return [
            (axis, *span(start, end, step, x.shape[axis]), step)
            for axis, start, end, step in zip(normal, starts, ends, steps, strict=True)
        ]

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        cuts = self.cuts(site)
        shape = list(x.shape)
        picks = [slice(None)] * x.rank
        for axis, first, count, step in cuts:
            shape[axis] = count
            if isinstance(first, int) and isinstance(count, int):
                stop = first + count * step
                picks[axis] = slice(first, stop if stop >= 0 else None, step) if count else slice(0, 0)
        return [moved(site, TensorType(x.dtype, tuple(shape)), lambda value: value[tuple(picks)])]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return self

    def reordered_operands(self, site: Site, order: tuple[int, ...]) -> Mapping[int, np.ndarray | None]:
        axes = np.array([order.index(axis) for axis, *_ in self.cuts(site)], np.int64)
        return {1: None, 2: None, 3: axes, 4: None}

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        for axis, first, count, step in self.cuts(to.site):
            x = x.sliced(axis, first, count, step)
        to.set(0, x)


def span(start: Dim, end: Dim, step: int, size: Dim) -> tuple[Dim, Dim]:
    """The first element of an axis and how many, for bounds that count from the end where negative and are clamped."""
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first = minimum(maximum(_from_front(start, size), 0), high if step < 0 else size)
    last = minimum(maximum(_from_front(end, size), low), high)
    room = last - first if step > 0 else first - last
    count = maximum(room + abs(step) - 1, 0) // abs(step)
    if count == 0:
        first = 0  # nothing is read; an offset inside the tensor all the same
    return first, count


def _from_front(bound: Dim, size: Dim) -> Dim:
    low, high = bounds(bound)
    if high < 0:
        return bound + size
    if low < 0:
        raise Unsupported(f"whether the bound {bound} counts from the end is known only at run time", FIX_DIMENSIONS)
    return bound
