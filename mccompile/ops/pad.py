"""Pad and CenterCropPad: elements added around a tensor, or taken away where a pad is negative (that is a view)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..base.dims import Dim, Symbolic, bounds, maximum, minimum, static
from ..base.dtypes import bool_
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr, apply, index, operand
from ..kinds.pad import MODES
from ..kinds.pad import Pad as PadKind
from ..program.ir import View
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .rules.at_run_time import Formula, both, clamped, equals, from_front, gathered, must_equal, number, static_count
from .rules.known_shapes import FIX_DIMENSIONS, sizes

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class Pad(Operator):
    versions = (1, 2, 11, 13, 18, 19, 21, 23, 24, 25)
    fusion = INJECTIVE
    mode: str = "constant"

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        node.attribute_to_input("paddings" if node.version == 1 else "pads", 1)
        x = node.inputs[0] if node.inputs else None
        if "value" in node.attributes and x is not None:
            node.attribute_to_input("value", 2, x.type.dtype.numpy)
        return make(cls, node)

    def pads(self, site: Site) -> tuple[list[int], list[int]]:
        """The same where all are numbers."""
        site.known_ints(1, "the pads")
        before, after = self.spans(site)
        return [static(low) for low in before], [static(high) for high in after]

    def spans(self, site: Site) -> tuple[list[Dim], list[Dim]]:
        """Per axis, how much goes before and after it."""
        rank = site.type(0).rank
        pads = site.known(1, "the pads")
        axes = site.known_ints(3, "the axes") if site.has(3) else list(range(rank))
        if len(pads) != 2 * len(axes):
            raise Invalid(f"{len(pads)} pads for {len(axes)} axes")
        normal = [normal_axis(axis, rank) for axis in axes]
        if len(set(normal)) != len(normal):
            raise Invalid(f"an axis is named twice in {axes}")
        before, after = list[Dim]([0] * rank), list[Dim]([0] * rank)
        for place, axis in enumerate(normal):
            before[axis], after[axis] = pads[place], pads[place + len(axes)]
        return before, after

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if self.mode not in MODES:
            raise Invalid(f"mode {self.mode!r} is not {', '.join(MODES)}")
        if site.has(2) and (site.type(2).dtype is not x.dtype or site.type(2).shape not in ((), (1,))):
            raise Invalid(f"the constant value is {site.type(2)}, not a scalar {x.dtype}")
        if not site.is_known(1, 3):
            declared = site.open_shape(0, "a pad", [None] * x.rank, x.shape)
            if len(declared) != x.rank:
                raise Invalid(f"{x} is not padded to {declared}, which the model declares")
            nothing = 0 in x.shape and 0 not in declared
            if self.mode != "constant" and nothing:
                raise Invalid(f"{x} has no elements to be padded with")
            return [Fact(TensorType(x.dtype, declared))]
        before, after = self.spans(site)
        shape: list[Dim] = []
        for axis, dim in enumerate(x.shape):
            kept = dim + minimum(before[axis], 0) + minimum(after[axis], 0)
            if bounds(kept)[1] < 0:
                raise Invalid(f"pads {before[axis]} and {after[axis]} take more than axis {axis} of {x} has")
            if self.mode != "constant" and kept == 0 and bounds(maximum(before[axis], after[axis]))[0] > 0:
                raise Invalid(f"axis {axis} of {x} has no elements to be padded with")
            shape.append(dim + before[axis] + after[axis])
        return [Fact(TensorType(x.dtype, tuple(shape)))]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return self

    def reordered_operands(self, site: Site, order: tuple[int, ...]) -> Mapping[int, np.ndarray | None]:
        before, after = self.pads(site)
        pads = [side[axis] for side in (before, after) for axis in order]
        return {1: np.array(pads, np.int64), 2: None, 3: np.arange(len(order)) if site.has(3) else None}

    def lower(self, to: Lowering) -> None:
        given = to.site.value(1)
        if not to.site.is_known(1, 3) or given is None or any(isinstance(pad, Symbolic) for pad in given.reshape(-1)):
            to.set(0, self.computed(to, to.input(0)))
            return
        before, after = self.pads(to.site)
        for axis, dim in enumerate(to.input(0).shape):
            fill = self.mode != "constant" and max(before[axis], after[axis]) > 0  # with something of x
            to.require(dim + min(before[axis], 0) + min(after[axis], 0) - fill)
        value = to.reshape(to.input(2), ()) if to.has(2) and self.mode == "constant" else None
        to.set(0, padded(to, to.input(0), before, after, self.mode, value))

    def computed(self, to: Lowering, x: View) -> View:
        """Where pads or axes are known only at run time: every element from where it comes, if it comes from x."""
        formula, rank = Formula(to), len(x.shape)
        pads = formula.elements(1)
        named = [from_front(axis, rank) for axis in formula.elements(3)] if to.has(3) else [*map(number, range(rank))]
        if len(pads) != 2 * len(named):
            raise Invalid(f"{len(pads)} pads for {len(named)} axes")
        for n, name in enumerate(named):
            formula.require(both([apply("less", name, number(rank)), apply("greater_equal", name, number(0))]))
            formula.require(both([apply("not", apply("equal", name, other)) for other in named[:n]]))
        spans: dict[int, tuple[Expr, Expr]] = {}
        for axis, (size, out) in enumerate(zip(x.shape, to.type().shape, strict=True)):
            if self.keeps(to.site, axis):
                continue
            before, after = number(0), number(0)
            for n, name in enumerate(named):
                before = apply("select", equals(name, axis), pads[n], before)
                after = apply("select", equals(name, axis), pads[n + len(named)], after)
            if not to.site.is_known(1, 3):
                formula.settle(out, apply("add", apply("add", before, after), number(size)))
            spans[axis] = before, after
        value = to.reshape(to.input(2), ()) if to.has(2) else None
        return padded_by_sources(formula, x, spans, self.mode, value)

    def keeps(self, site: Site, axis: int) -> bool:
        """Is it certain that an axis stays as it is?"""
        if not site.is_known(1, 3):
            return False
        before, after = self.spans(site)
        return before[axis] == after[axis] == 0

    def gradient(self, back: Backward) -> None:
        before, after = self.pads(back.site)
        of = back.of()
        if self.mode == "constant":
            back.give(0, back.pad(of, [-n for n in before], [-n for n in after]))
            if back.wants(2):
                inner = back.pad(of, [-max(n, 0) for n in before], [-max(n, 0) for n in after])
                whole = [back.sum(part, range(of.type.rank), keepdims=False) for part in (of, inner)]
                back.give(2, back.op("Sub", *whole))
            return
        back.nothing(2)
        for axis, size in enumerate(back.shape(0)):
            if before[axis] or after[axis]:
                places = np.arange(max(0, -before[axis]), size - max(0, -after[axis]))
                around = max(0, before[axis]), max(0, after[axis])
                of = back.scattered(of, axis, back.constant(_repeated(places, around, self.mode)), size)
        back.give(0, of)


def _repeated(places: np.ndarray, around: tuple[int, int], mode: str) -> np.ndarray:
    """Which element of x each one of the result is."""
    match mode:
        case "edge":
            return np.pad(places, around, mode="edge")
        case "reflect":
            return np.pad(places, around, mode="reflect")
    return np.pad(places, around, mode="wrap")


def _source(place: Expr, mode: str, size: Expr) -> Expr:
    """Which of `size` elements lies at a place that may be beside them."""
    last = apply("sub", size, number(1))
    if mode == "wrap":
        return apply("mod", place, apply("max", size, number(1)))
    if mode == "reflect":
        twice = apply("mul", number(2), last)
        turned = apply("mod", place, apply("max", twice, number(1)))
        return apply("min", turned, apply("sub", twice, turned))
    return apply("max", apply("min", place, last), number(0))


def padded_by_sources(
    formula: Formula, x: View, spans: Mapping[int, tuple[Expr, Expr]], mode: str = "constant", value: View | None = None
) -> View:
    """Where what goes before and after some axes is known only at run time."""
    to, dtype = formula.to, x.buffer.dtype
    shape = to.type().shape
    insides: dict[int, Expr] = {}
    sources: dict[int, Expr] = {}
    for axis, (before, after) in spans.items():
        size = x.shape[axis]
        cut = apply("max", apply("neg", before), number(0))
        kept = apply("sub", apply("add", number(size), apply("min", after, number(0))), cut)
        formula.require(apply("greater_equal", kept, number(0)))
        place = apply("sub", index(0), apply("max", before, number(0)))
        insides[axis] = both([apply("greater_equal", place, number(0)), apply("less", place, kept)])
        sources[axis] = clamped(apply("add", cut, _source(place, mode, kept)), 0, maximum(size - 1, 0))
    formula.check()
    places = {axis: formula.along(source, axis, shape) for axis, source in sources.items()}
    inside = [formula.along(condition, axis, shape) for axis, condition in insides.items()]
    value = to.constant(np.zeros((), dtype.numpy)) if value is None else value
    if x.type.count == 0 or 0 in shape:
        return to.map(operand(0, dtype), [value], shape)
    found = gathered(to, x, places, shape)
    if mode != "constant" or not inside:
        return found
    ins = [found, value, *inside]
    all_inside = both([operand(n + 2, bool_) for n in range(len(inside))])
    return to.map(apply("select", all_inside, operand(0, dtype), operand(1, dtype)), ins, shape)


def padded(
    to: Lowering, x: View, before: list[int], after: list[int], mode: str = "constant", value: View | None = None
) -> View:
    """The view cut where pads are negative, then padded where they are positive; with zeros if there is no value."""
    for axis, (low, high) in enumerate(zip(before, after, strict=True)):
        if min(low, high) < 0:
            x = x.sliced(axis, max(-low, 0), x.shape[axis] + min(low, 0) + min(high, 0))
    more = tuple(max(low, 0) for low in before), tuple(max(high, 0) for high in after)
    if not any((*more[0], *more[1])):
        return x
    shape = tuple(low + dim + high for low, dim, high in zip(more[0], x.shape, more[1], strict=True))
    if 0 in x.shape and mode == "constant" and not x.buffer.dtype.is_packed:
        element = to.constant(np.zeros((), x.buffer.dtype.numpy)) if value is None else value
        return element.broadcast_to(shape)
    ins = [x] if value is None else [x, value]
    return to.call(PadKind(*more, mode), ins, TensorType(x.buffer.dtype, shape))[0]


@dataclass(frozen=True)
class CenterCropPad(Operator):
    no_gradient = "sizes that are operands have no rule for the gradient"
    versions = (18,)
    fusion = INJECTIVE
    axes: tuple[int, ...] | None = None

    def pads(self, site: Site) -> tuple[list[Dim], list[Dim]]:
        x = site.type(0)
        axes = [normal_axis(axis, x.rank) for axis in (range(x.rank) if self.axes is None else self.axes)]
        wanted = sizes(site, 1, "the shape") if site.is_known(1) else self.declared_sizes(site, axes)
        if len(axes) != len(wanted) or len(set(axes)) != len(axes):
            raise Invalid(f"{len(wanted)} sizes for axes {axes}")
        before, after = list[Dim]([0] * x.rank), list[Dim]([0] * x.rank)
        for axis, size in zip(axes, wanted, strict=True):
            more = size - x.shape[axis]
            before[axis] = maximum(more, 0) // 2 - maximum(0 - more, 0) // 2
            after[axis] = more - before[axis]  # an odd one goes after
        return before, after

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        before, after = self.pads(site)
        shape = tuple(dim + low + high for dim, low, high in zip(x.shape, before, after, strict=True))
        return [Fact(TensorType(x.dtype, shape))]

    def declared_sizes(self, site: Site, axes: list[int]) -> Shape:
        declared = site.declared(0, "the shape")
        if len(declared) != site.type(0).rank or static_count(site.type(1)) != len(axes):
            raise Invalid(f"{site.type(0)} does not become {declared}, which the model declares")
        if not all(isinstance(declared[axis], int) for axis in axes):
            raise Unsupported(f"to what sizes of {declared} is known only at run time", FIX_DIMENSIONS)
        return tuple(declared[axis] for axis in axes)

    def lower(self, to: Lowering) -> None:
        if not to.site.is_known(1):
            rank = len(to.input(0).shape)
            axes = [normal_axis(axis, rank) for axis in (range(rank) if self.axes is None else self.axes)]
            must_equal(to, 1, [static(size) for size in self.declared_sizes(to.site, axes)])
        before, after = self.pads(to.site)
        low, high = ([pad for pad in side if isinstance(pad, int)] for side in (before, after))
        if len(low) == len(high) == len(before):
            to.set(0, padded(to, to.input(0), low, high))
            return
        spans = {axis: (number(a), number(b)) for axis, (a, b) in enumerate(zip(before, after, strict=True)) if b != 0}
        to.set(0, padded_by_sources(Formula(to), to.input(0), spans))
