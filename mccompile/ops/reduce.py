"""Reductions over axes: ReduceSum and its family.

An empty set of elements gives the identity of the operation, its mean is 0; sums of many floats are exact but for the
last places.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ..base.dims import Dim, maximum, minimum, product
from ..base.dtypes import DType, bool_, f64, i32, i64, u32, u64
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType, show_shape
from ..expr.ir import Expr, apply, cast, literal, number, operand
from ..graph.ir import Value
from ..kinds.reduce import Reduce
from ..program.ir import View
from .api import REDUCTION, Fact, Invalid, Lowering, OnnxNode, Operator, Site, make, normal_axes
from .rules.at_run_time import (
    Formula,
    axes_choices,
    axes_mask,
    chosen,
    is_one_of,
    must_name,
    static_count,
    static_shape,
)
from .rules.elementwise import check_dtypes, wide
from .rules.known_elements import fitting
from .rules.open_axes import is_declared, named_view, open_dims

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class Reduction(Operator, abstract=True):
    """Fields, operands and shapes that all reductions share."""

    fusion = REDUCTION
    takes: ClassVar[str] = "numbers"
    combine: ClassVar[str] = "add"
    through_floats: ClassVar[bool] = False  # integers too are computed as floats
    noop_with_empty_axes: int = 0
    keepdims: int = 1

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        node.attribute_to_input("axes", 1)
        return make(cls, node)

    def element(self, x: Expr) -> Expr:
        """What is combined, in the accumulator's type."""
        return x

    def finish(self, total: Expr, count: Callable[[], Expr]) -> Expr:
        """The result, in the accumulator's type."""
        return total

    def axes(self, site: Site) -> tuple[int, ...]:
        rank = len(site.shape(0))
        axes = site.known_ints(1, "the axes") if site.has(1) else []
        if axes:
            return normal_axes(axes, rank)
        return () if self.noop_with_empty_axes else tuple(range(rank))

    def possible_axes(self, site: Site) -> list[tuple[int, ...]]:
        """Where the axes are computed at run time, all that lead to the shape that is declared, if one is."""
        shape = static_shape(site.type(0))
        choices = axes_choices(len(shape), static_count(site.type(1)))
        if not is_declared(site):
            return choices
        declared = site.declared(0, "the axes")
        found = [axes for axes in choices if self.result_shape(shape, axes) == declared]
        if not found:
            raise Invalid(f"no axes reduce {site.type(0)} to {show_shape(declared)}, which the model declares")
        return found

    def result_shape(self, shape: Shape, axes: tuple[int, ...]) -> Shape:
        if self.keepdims:
            return tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
        return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)

    def accumulator(self, dtype: DType) -> DType:
        return f64 if self.through_floats and not dtype.is_float else wide(dtype)

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        check_dtypes(self.name, self.takes, [x])
        if not site.is_known(1):
            shapes = [self.result_shape(x.shape, axes) for axes in self.possible_axes(site)]
            return [Fact(TensorType(x.dtype, open_dims(site, shapes)))]
        axes = self.axes(site)
        return [Fact(TensorType(x.dtype, self.result_shape(x.shape, axes)), self.known(site, axes))]

    def known(self, site: Site, axes: tuple[int, ...]) -> np.ndarray | None:
        """The result where elements are known: products and sums of dimensions."""
        value, function = site.value(0), _KNOWN.get(self.name)
        if value is None or function is None or not site.type(0).dtype.is_integer:
            return None
        moved = np.moveaxis(value, axes, range(len(axes)))
        rest = moved.shape[len(axes) :]
        if not value.size:
            return None
        flat = moved.reshape(-1, *rest)
        result = np.empty(rest, dtype=object)
        for place in np.ndindex(*rest):
            element = fitting(
                reduce(function, [flat.item(row, *place) for row in range(len(flat))]), site.type(0).dtype
            )
            if element is None:
                return None
            result[place] = element
        shape = tuple(1 if axis in axes else value.shape[axis] for axis in range(value.ndim))
        return result.reshape(shape) if self.keepdims else result

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return self if self.keepdims else None

    def reordered_operands(self, site: Site, order: tuple[int, ...]) -> Mapping[int, np.ndarray | None]:
        axes = [order.index(axis) for axis in self.axes(site)]
        return {1: np.array(axes, np.int64) if site.has(1) else None}

    def lower(self, to: Lowering) -> None:
        if not to.site.is_known(1):
            to.set(0, self.along_computed_axes(to))
            return
        axes = self.axes(to.site)
        to.set(0, to.reshape(self.reduced(to, to.input(0), axes), to.type().shape))

    def along_computed_axes(self, to: Lowering) -> View:
        """One reduction for each set of axes that gives other elements, and the choice between them."""
        x, possible = to.input(0), self.possible_axes(to.site)
        if not to.type().is_static:
            parts = {axes: (self.reduced(to, x, axes), self.result_shape(x.shape, axes)) for axes in possible}
            views = {axes: to.reshape(view, shape) for axes, (view, shape) in parts.items()}
            return named_view(to, 1, len(x.shape), views)
        must_name(to, 1, len(x.shape), possible)
        different: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for axes in possible:
            different.setdefault(tuple(axis for axis in axes if x.shape[axis] != 1), []).append(axes)
        each = [to.reshape(self.reduced(to, x, same[0]), to.type().shape) for same in different.values()]
        formula = Formula(to)
        mask = axes_mask(formula, 1, len(x.shape))
        return chosen(formula, [is_one_of(mask, same) for same in different.values()], each)

    def reduced(self, to: Lowering, x: View, axes: tuple[int, ...]) -> View:
        dtype = x.buffer.dtype
        accumulator = self.accumulator(dtype)
        element = self.element(cast(operand(0, dtype), accumulator))
        result = cast(self.finish(operand(0, accumulator), lambda: element_count(x.shape, axes, accumulator)), dtype)
        return reduce_call(to, axes, self.combine, element, [x], result)

    def gradient(self, back: Backward) -> None:
        """By `share`, from the operand, the result and the gradient of the result, whose reduced axes have size 1."""
        axes = self.axes(back.site)
        kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(back.shape(0)))
        result, of = back.reshape(back.result(), kept), back.reshape(back.of(), kept)
        back.give(0, self.share(back, back.input(0), result, of, axes))

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        """The gradient of the operand; it may have size 1 where it is the same along an axis."""
        back.refuse(f"{self.name} has no rule for its gradient")


def reduce_call(
    to: Lowering, axes: tuple[int, ...], combine: str, element: Expr, ins: list[View], epilogue: Expr, extras: int = 0
) -> View:
    """One reduction of `element`; the last `extras` of `ins` belong to the epilogue. Reduced axes stay, with size 1."""
    plain = epilogue == operand(0, element.dtype)
    kind = Reduce(axes, combine, element.dtype, element, None if plain else epilogue, len(ins) - extras)
    return to.call(kind, ins, TensorType(epilogue.dtype, kind.out_shape(ins[0].shape)))[0]


def element_count(shape: Shape, axes: tuple[int, ...], dtype: DType) -> Expr:
    """How many elements are reduced to one; 1 where there are none, so that their mean is 0."""
    return number(maximum(product(shape[axis] for axis in axes), 1), dtype)


class ReduceSum(Reduction):
    versions = (1, 11, 13)

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        return of


class ReduceMean(Reduction):
    """Of integers it lies among them, however large their sum is: those of 32 bits add up in 64."""

    versions = (1, 11, 13, 18)

    def accumulator(self, dtype: DType) -> DType:
        return {i32: i64, u32: u64}.get(dtype, super().accumulator(dtype))

    def finish(self, total: Expr, count: Callable[[], Expr]) -> Expr:
        return apply("div", total, count())

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        return back.scaled(of, 1 / max(1, math.prod(back.shape(0)[axis] for axis in axes)))


class Extreme(Reduction, abstract=True):
    """Of bools as well, where False < True."""

    takes = "numbers or bools"
    of_bools: ClassVar[str] = ""

    def reduced(self, to: Lowering, x: View, axes: tuple[int, ...]) -> View:
        if x.buffer.dtype is not bool_:
            return super().reduced(to, x, axes)
        return reduce_call(to, axes, self.of_bools, operand(0, bool_), [x], operand(0, bool_))

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        return back.shared_by_equals(x, result, of, axes)


class ReduceMax(Extreme):
    versions = (1, 11, 12, 13, 18, 20)
    combine = "max"
    of_bools = "or"


class ReduceMin(Extreme):
    versions = (1, 11, 12, 13, 18, 20)
    combine = "min"
    of_bools = "and"


class ReduceProd(Reduction):
    versions = (1, 11, 13, 18)
    combine = "mul"

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        """The product of the other elements, whether some are zero or not."""
        dtype = x.type.dtype
        element, one, zero = operand(0, dtype), literal(1, dtype), literal(0, dtype)
        is_zero = apply("equal", element, zero)
        zeros = back.sum(back.pointwise(apply("select", is_zero, one, zero), x), axes)
        filled = back.pointwise(apply("select", is_zero, one, element), x)
        rest = back.op("ReduceProd", filled, back.ints(axes), keepdims=1) if axes else filled
        count, others, given = (operand(i, dtype) for i in (1, 2, 3))
        of_zero = apply("select", apply("equal", count, one), others, zero)
        of_other = apply("select", apply("equal", count, zero), apply("div", others, element), zero)
        slope = apply("select", is_zero, of_zero, of_other)
        return back.pointwise(apply("mul", given, slope), x, zeros, rest, of)


class ReduceL1(Reduction):
    versions = (1, 11, 13, 18)

    def element(self, x: Expr) -> Expr:
        return apply("abs", x)

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        element, given = operand(0, x.type.dtype), operand(1, x.type.dtype)
        return back.pointwise(apply("mul", given, apply("sign", element)), x, of)


class ReduceL2(Reduction):
    versions = (1, 11, 13, 18)
    through_floats = True

    def element(self, x: Expr) -> Expr:
        return apply("mul", x, x)

    def finish(self, total: Expr, count: Callable[[], Expr]) -> Expr:
        return apply("sqrt", total)

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        """0 where all elements are."""
        element, total, given = (operand(i, x.type.dtype) for i in range(3))
        zero = literal(0, x.type.dtype)
        share = apply("select", apply("equal", total, zero), zero, apply("div", element, total))
        return back.pointwise(apply("mul", given, share), x, result, of)


class ReduceSumSquare(Reduction):
    versions = (1, 11, 13, 18)

    def element(self, x: Expr) -> Expr:
        return apply("mul", x, x)

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        element, given = operand(0, x.type.dtype), operand(1, x.type.dtype)
        return back.pointwise(apply("mul", given, apply("add", element, element)), x, of)


class ReduceLogSum(Reduction):
    versions = (1, 11, 13, 18, 28)
    through_floats = True

    def finish(self, total: Expr, count: Callable[[], Expr]) -> Expr:
        return apply("log", total)

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        return back.op("Div", of, back.sum(x, axes))


class ReduceLogSumExp(Reduction):
    """The largest element is taken out of the sum first, so no exponential overflows."""

    versions = (1, 11, 13, 18, 28)
    through_floats = True

    def reduced(self, to: Lowering, x: View, axes: tuple[int, ...]) -> View:
        dtype = x.buffer.dtype
        accumulator = self.accumulator(dtype)
        element, total = cast(operand(0, dtype), accumulator), operand(0, accumulator)
        if dtype.is_integer:
            top = reduce_call(to, axes, "max", operand(0, dtype), [x], operand(0, dtype))
            share = apply("exp_whole", apply("sub", cast(operand(1, dtype), u64), cast(operand(0, dtype), u64)))
            result = apply("add", apply("log", total), cast(operand(1, dtype), accumulator))
            return reduce_call(
                to, axes, "add", share, [x, top.broadcast_to(x.shape), top], cast(result, dtype), extras=1
            )
        infinite = apply("or", apply("is_positive_inf", total), apply("is_negative_inf", total))
        finite = apply("select", infinite, literal(0, accumulator), total)
        top = reduce_call(to, axes, "max", element, [x], finite)
        share = apply("exp", apply("sub", element, operand(1, accumulator)))
        result = apply("add", apply("log", total), operand(1, accumulator))
        ins = [x, top.broadcast_to(x.shape), top]
        return reduce_call(to, axes, "add", share, ins, cast(result, dtype), extras=1)

    def share(self, back: Backward, x: Value, result: Value, of: Value, axes: tuple[int, ...]) -> Value:
        element, total, given = (operand(i, x.type.dtype) for i in range(3))
        share = apply("exp", apply("sub", element, total))
        return back.pointwise(apply("mul", given, share), x, result, of)


_KNOWN: dict[str, Callable[[Dim, Dim], Dim]] = {
    "ReduceSum": lambda a, b: a + b,
    "ReduceProd": lambda a, b: a * b,
    "ReduceMax": maximum,
    "ReduceMin": minimum,
}
