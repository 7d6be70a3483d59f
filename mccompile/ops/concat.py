"""Concat and Split: tensors joined along an axis, and cut apart again (Split makes views only)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..base.dims import Dim, bounds, ceil_div, maximum, static, upper
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType, agree, may_be_equal
from ..expr.ir import apply, index
from ..kinds.concat import Concat as ConcatKind
from ..program.ir import View
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axis
from .rules.at_run_time import Formula, clamped, equals, gathered, must_equal, number
from .rules.known_shapes import FIX_DIMENSIONS, fact, sizes

if TYPE_CHECKING:
    from .rules.backward import Backward


AT_ONCE = 100  # operands of one call: C99 promises 127 parameters of a function, and some are results and sizes


@dataclass(frozen=True)
class Concat(Operator):
    versions = (1, 4, 11, 13)
    fusion = INJECTIVE
    axis: int
    apart: ClassVar[bool] = False

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version == 1:
            node.attributes.setdefault("axis", 1)
        return make(cls, node)

    def infer(self, site: Site) -> list[Fact]:
        parts = [site.type(i) for i in range(len(site.facts))]
        if not parts:
            raise Invalid("there is nothing to join")
        first = parts[0]
        if not first.rank:
            raise Invalid("scalars cannot be joined")
        axis = normal_axis(self.axis, first.rank)
        for part in parts:
            if part.dtype is not first.dtype or part.rank != first.rank:
                raise Invalid(f"{part} cannot be joined to {first}")
        type = TensorType(first.dtype, _joined(parts, axis))
        values = [site.value(i) for i in range(len(parts))]
        present = [value for value in values if value is not None]
        return [fact(type, np.concatenate(present, axis) if len(present) == len(values) else None)]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return type(self)(order.index(normal_axis(self.axis, len(order))))

    def lower(self, to: Lowering) -> None:
        axis = normal_axis(self.axis, to.type().rank)
        parts = [to.seen_as(view, _with_size(to.type().shape, axis, view.shape[axis])) for view in to.inputs()]
        parts = [view for view in parts if view.shape[axis] != 0] or parts[:1]
        whole = side_by_side(parts, axis, to.type().shape) if len(parts) > 1 else parts[0]
        if whole is None and len(parts) > AT_ONCE:
            parts = _runs(parts, axis)
        while whole is None and len(parts) > AT_ONCE:
            some = (parts[n : n + AT_ONCE] for n in range(0, len(parts), AT_ONCE))
            parts = [self._call(to, each, axis) if len(each) > 1 else each[0] for each in some]
        to.set(0, whole or self._call(to, parts, axis))

    def _call(self, to: Lowering, parts: Sequence[View], axis: int) -> View:
        shape = _with_size(to.type().shape, axis, _total(parts, axis))
        return to.call(ConcatKind(axis, apart=self.apart), parts, TensorType(to.type().dtype, shape))[0]

    def gradient(self, back: Backward) -> None:
        start, axis = 0, normal_axis(self.axis, back.result().type.rank)
        for place in range(len(back.forward.inputs)):
            size = back.shape(place)[axis]
            if back.wants(place):
                back.give(place, back.slice(back.of(), axis, start, size))
            start += size


class JoinStrips(Concat):
    """A Concat whose operands are made one after the other."""

    domain = "mccompile"
    apart = True


def _joined(types: Sequence[TensorType], axis: int) -> Shape:
    """Sizes that are known only at run time count as equal where they may be: lowering checks it."""
    first = types[0]
    for type in types:
        for place, (a, b) in enumerate(zip(first.shape, type.shape, strict=True)):
            if place == axis or agree((a,), (b,)):
                continue
            if not may_be_equal(a, b):
                raise Invalid(f"{type} cannot be joined to {first} along axis {axis}")
            raise Unsupported(f"{a} and {b} are equal only for some sizes", FIX_DIMENSIONS)
    along = zip(*(type.shape for type in types), strict=True)
    return tuple(reduce(add, dims) if place == axis else min(dims, key=upper) for place, dims in enumerate(along))


def _with_size(shape: Shape, axis: int, size: Dim) -> Shape:
    return (*shape[:axis], size, *shape[axis + 1 :])


def _total(parts: Sequence[View], axis: int) -> Dim:
    return reduce(add, (view.shape[axis] for view in parts))


def _runs(parts: Sequence[View], axis: int) -> list[View]:
    """As one view what lies side by side."""
    found = [parts[0]]
    for part in parts[1:]:
        pair = (found[-1], part)
        view = side_by_side(pair, axis, _with_size(part.shape, axis, _total(pair, axis)))
        found[-1:] = [view] if view else pair
    return found


def side_by_side(parts: Sequence[View], axis: int, shape: Shape) -> View | None:
    """The view of all where each part begins where the one before ends: pieces of a tensor that were cut apart, or
    frames of a signal."""
    first = parts[0]
    if not all(part.is_static and isinstance(part.offset, int) for part in parts):
        return None
    start = static(first.offset)
    between = static(parts[1].offset) - start
    step = next((static(part.strides[axis]) for part in parts if part.shape[axis] != 1), between)
    for part in parts:
        alike = all(
            dim == 1 or (step if place == axis else stride) == own
            for place, (dim, own, stride) in enumerate(zip(part.shape, part.strides, first.strides, strict=True))
        )
        if part.buffer is not first.buffer or part.offset != start or part.lines or not alike:
            return None
        start += static(part.shape[axis]) * step
    strides = tuple(step if place == axis else stride for place, stride in enumerate(first.strides))
    return replace(first, shape=shape, strides=strides)


@dataclass(frozen=True)
class Split(Operator):
    versions = (1, 2, 11, 13, 18)
    fusion = INJECTIVE
    axis: int = 0
    num_outputs: int | None = None

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        node.attribute_to_input("split", 1)
        sizes = node.inputs[1].constant if len(node.inputs) > 1 and node.inputs[1] is not None else None
        if node.version == 1 and sizes is not None:  # of the type of what is split
            node.set_input(1, node.constant(sizes.array.astype(np.int64)))
        if node.version < 18 and (len(node.inputs) < 2 or node.inputs[1] is None) and _is_even(node):
            node.attributes["num_outputs"] = node.outputs  # which newer ones have to say
        return make(cls, node)

    def parts(self, site: Site) -> tuple[int, tuple[Dim, ...]]:
        """The axis and the size of each part."""
        x = site.type(0)
        axis = normal_axis(self.axis, x.rank)
        dim = x.shape[axis]
        if site.has(1):
            found = sizes(site, 1, "the sizes of the parts") if site.is_known(1) else _declared_parts(site, axis)
            total: Dim = 0
            for size in found:
                total = total + size
            said = site.type(1).count
            fits = total == dim or not (site.is_known(1) or isinstance(total, int))  # or a run finds out
            if len(found) != site.outputs or not fits or (isinstance(said, int) and said != len(found)):
                raise Invalid(f"parts {list(found)} are not {site.outputs} parts of {dim}")
            return axis, found
        count = self.num_outputs if self.num_outputs is not None else site.outputs
        if count != site.outputs or count < 1:
            raise Invalid(f"num_outputs is {count}, there are {site.outputs} results")
        if dim % count == 0:
            return axis, (dim // count,) * count
        if self.num_outputs is None:
            raise Invalid(f"{dim} does not divide into {count} equal parts")
        each = ceil_div(dim, count)
        last = dim - each * (count - 1)
        if bounds(last)[1] < 0:
            raise Invalid(f"{dim} is too small for {count} parts of {each}")
        return axis, (*(each for _ in range(count - 1)), last)

    def infer(self, site: Site) -> list[Fact]:
        x, value = site.type(0), site.value(0)
        axis, parts = self.parts(site)
        facts = []
        start: Dim = 0
        for size in parts:
            type = TensorType(x.dtype, (*x.shape[:axis], size, *x.shape[axis + 1 :]))
            piece = None
            if value is not None and isinstance(start, int) and isinstance(size, int):
                piece = value[(slice(None),) * axis + (slice(start, start + size),)]
            facts.append(fact(type, piece))
            start = start + size
        return facts

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return replace(self, axis=order.index(normal_axis(self.axis, len(order))))

    def reordered_operands(self, site: Site, order: tuple[int, ...]) -> Mapping[int, np.ndarray | None]:
        return {1: None}

    def lower(self, to: Lowering) -> None:
        axis, parts = self.parts(to.site)
        if not to.site.is_known(1):
            if not all(isinstance(size, int) for size in parts):
                self.computed(to, axis, parts)
                return
            must_equal(to, 1, [static(size) for size in parts])
        start: Dim = 0
        for result, size in enumerate(parts):
            if to.wants(result):
                to.set(result, to.input(0).sliced(axis, start, size))
            start = start + size

    def computed(self, to: Lowering, axis: int, parts: tuple[Dim, ...]) -> None:
        """Where the sizes are known only at run time; those that are not are views."""
        x, formula = to.input(0), Formula(to)
        starts, total = [], number(0)
        for asked, size in zip(formula.elements(1), parts, strict=True):
            formula.settle(size, asked)
            starts.append(total)
            total = apply("add", total, asked)
        formula.require(equals(total, x.shape[axis]))
        formula.check()
        for result, start in enumerate(starts):
            if to.wants(result):
                shape, last = to.type(result).shape, maximum(x.shape[axis] - 1, 0)
                place = formula.along(clamped(apply("add", start, index(0)), 0, last), axis, shape)
                to.set(result, gathered(to, x, {axis: place}, shape))

    def gradient(self, back: Backward) -> None:
        axis, parts = self.parts(back.site)
        found = [back.of(result) for result in range(len(parts))]
        back.give(0, found[0] if len(found) == 1 else back.op("Concat", *found, axis=axis))


def _is_even(node: OnnxNode) -> bool:
    x = node.inputs[0]
    if x is None or node.outputs < 1:
        return False
    axis = normal_axis(node.attributes.get("axis", 0), x.type.rank)
    return x.type.shape[axis] % node.outputs == 0


def _declared_parts(site: Site, axis: int) -> tuple[Dim, ...]:
    x, found = site.type(0), list[Dim]()
    for result in range(site.outputs):
        type = site.results[result] if result < len(site.results) else None
        if type is not None and type.rank != x.rank:
            raise Invalid(f"the model declares parts of {x} that have another rank")
        if type is not None and type.is_static:
            found.append(type.shape[axis])
        else:
            found.append(site.size(result, axis, upper(x.shape[axis]), part=f"_{result}"))
    return tuple(found)
