"""Slice: every step-th element between bounds that are known at compile time. A view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..base.dims import Dim, Symbolic, bounds, maximum, minimum, static
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr, apply, index
from ..program.ir import View
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .rules.at_run_time import Formula, both, clamped, equals, from_front, gathered, number, static_count
from .rules.known_shapes import FIX_DIMENSIONS, moved

if TYPE_CHECKING:
    from .rules.backward import Backward

Cut = tuple[int, Dim, Dim, int]  # axis, first element, how many, step


@dataclass(frozen=True)
class Slice(Operator):
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
        if not site.is_known(1, 2, 3, 4):
            declared = self.open_shape(site)
            too_much = (bounds(a - b)[0] > 0 for a, b in zip(declared, x.shape, strict=False))
            if len(declared) != x.rank or any(too_much):
                raise Invalid(f"{declared}, which the model declares, is not a part of {x}")
            return [Fact(TensorType(x.dtype, declared))]
        cuts = self.cuts(site)
        shape = list(x.shape)
        picks = [slice(None)] * x.rank
        for axis, first, count, step in cuts:
            shape[axis] = count
            if isinstance(first, int) and isinstance(count, int):
                stop = first + count * step
                picks[axis] = slice(first, stop if stop >= 0 else None, step) if count else slice(0, 0)
        type = TensorType(x.dtype, tuple(shape))
        if any(isinstance(first, Symbolic) for _, first, *_ in cuts):
            return [Fact(type)]  # which elements they are is known only at run time
        return [moved(site, type, lambda value: value[tuple(picks)])]

    def open_shape(self, site: Site) -> Shape:
        """The shape where bounds are computed at run time: axes that are named may get any size."""
        x = site.type(0)
        if not site.is_known(3, 4):
            return site.declared(0, "an axis or a step")
        count = static_count(site.type(1))
        axes = [normal_axis(axis, x.rank) for axis in (site.known_ints(3, "the axes") if site.has(3) else range(count))]
        found = list(site.open_shape(0, "a bound", x.shape))
        if len(found) != x.rank:
            raise Invalid(f"{tuple(found)}, which the model declares, is not a part of {x}")
        return tuple(found[axis] if axis in axes else dim for axis, dim in enumerate(x.shape))

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return self

    def reordered_operands(self, site: Site, order: tuple[int, ...]) -> Mapping[int, np.ndarray | None]:
        axes = np.array([order.index(axis) for axis, *_ in self.cuts(site)], np.int64)
        return {1: None, 2: None, 3: axes, 4: None}

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        if not to.site.is_known(1, 2, 3, 4):
            to.set(0, self.computed(to, x))
            return
        for axis, first, count, step in self.cuts(to.site):
            x = x.sliced(axis, first, count, step)
        to.set(0, x)

    def computed(self, to: Lowering, x: View) -> View:
        """Where bounds, axes or steps are computed at run time."""
        formula = Formula(to)
        count = static_count(to.site.type(1))
        given = [formula.elements(i) if to.has(i) else [] for i in range(1, 5)]
        starts, ends, axes, steps = given
        rank = len(x.shape)
        if any(to.has(i) and static_count(to.site.type(i)) != count for i in range(1, 5)):
            raise Invalid("starts, ends, axes and steps differ in number")
        named = [from_front(axis, rank) for axis in axes] or [number(n) for n in range(count)]
        for n, name in enumerate(named):
            formula.require(both([apply("less", name, number(rank)), apply("greater_equal", name, number(0))]))
            formula.require(both([apply("not", apply("equal", name, other)) for other in named[:n]]))
        reads: dict[int, Expr] = {}
        for axis, (size, out) in enumerate(zip(x.shape, to.type().shape, strict=True)):
            start, end, step = number(0), number(size), number(1)
            for n, name in enumerate(named):
                here = equals(name, axis)
                start = apply("select", here, starts[n], start)
                end = apply("select", here, ends[n], end)
                step = apply("select", here, steps[n] if steps else number(1), step)
            first, found = _counted(start, end, step, size)
            formula.require(apply("not", equals(step, 0)))
            if out != size:
                formula.settle(out, found)
            else:
                formula.require(equals(found, out))
            if out != 0:
                at = apply("add", first, apply("mul", index(0), step))
                reads[axis] = clamped(at, 0, maximum(size - 1, 0))
        formula.check()
        places = {axis: formula.along(at, axis, to.type().shape) for axis, at in reads.items()}
        if 0 in to.type().shape:
            return to.nothing(to.type())
        return gathered(to, x, places, to.type().shape)

    def gradient(self, back: Backward) -> None:
        of, shape = back.of(), back.shape(0)
        back.site.known_ints(1, "the starts")
        for axis, first, count, step in self.cuts(back.site):
            of = back.spread(of, axis, static(first), static(count), step, shape[axis])
        back.give(0, of)


def _counted(start: Expr, end: Expr, step: Expr, size: Dim) -> tuple[Expr, Expr]:
    """The first element and how many, as `span` has it."""
    forward = apply("greater", step, number(0))
    start, end = from_front(start, size), from_front(end, size)
    first = apply("select", forward, clamped(start, 0, size), clamped(start, 0, size - 1))
    last = apply("select", forward, clamped(end, 0, size), clamped(end, -1, size - 1))
    room = apply("select", forward, apply("sub", last, first), apply("sub", first, last))
    stride = apply("abs", step)
    whole = apply("div", apply("sub", apply("add", room, stride), number(1)), stride)
    huge = apply("greater_equal", stride, number(maximum(size, 1)))  # the sum above would overflow
    some = apply("select", huge, number(1), whole)
    return first, apply("select", apply("greater", room, number(0)), some, number(0))


def span(start: Dim, end: Dim, step: int, size: Dim) -> tuple[Dim, Dim]:
    """The first element of an axis and how many, for bounds that count from the end where negative and are clamped."""
    low, high = (0, size) if step > 0 else (-1, size - 1)
    first = minimum(maximum(_from_front(start, size), 0), high if step < 0 else size)
    last = minimum(maximum(_from_front(end, size), low), high)
    room = last - first if step > 0 else first - last
    count = maximum(room + abs(step) - 1, 0) // abs(step)
    if count == 0:
        first = 0  # nothing is read; an offset inside the tensor all the same
    elif isinstance(count, Symbolic) and step > 0:
        first = minimum(first, maximum(size - 1, 0))  # likewise, at sizes where there are none
    return first, count


def _from_front(bound: Dim, size: Dim) -> Dim:
    low, high = bounds(bound)
    if high < 0:
        return bound + size
    if low < 0:
        raise Unsupported(f"whether the bound {bound} counts from the end is known only at run time", FIX_DIMENSIONS)
    return bound
