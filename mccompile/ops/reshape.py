"""Reshape, Flatten, Squeeze, Unsqueeze: the same elements in another shape. Views wherever strides can say it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, TypeVar

from ..base.dims import Dim, bounds, product, static
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType, dense_strides
from ..expr.ir import Expr, apply, index, size
from ..kinds.gather import Gather
from ..program.ir import View
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axes
from .rules.at_run_time import Formula, axes_choices, either, equals, must_name, number, static_count, static_shape
from .rules.known_shapes import FIX_DIMENSIONS, moved, same_count, show
from .rules.open_axes import is_declared, named_view, open_dims

if TYPE_CHECKING:
    from .rules.backward import Backward

D = TypeVar("D", bound=Dim)


class Axes(Operator, abstract=True):
    """Operators whose operand 1 names axes of size 1."""

    versions = (1, 11, 13, 21, 23, 24, 25)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        node.attribute_to_input("axes", 1)
        return make(cls, node)

    def declared_shape(self, site: Site) -> Shape:
        """The shape, where the axes are computed at run time."""
        before = static_shape(site.type(0))
        declared = site.declared(0, "the axes")
        if not self.choices(before, declared, static_count(site.type(1))):
            raise Invalid(f"no axes make {show(before)} to {show(declared)}, which the model declares")
        return declared

    def choices(self, before: tuple[int, ...], after: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
        raise NotImplementedError

    def check_axes(self, to: Lowering, rank: int) -> None:
        """At run time the axes must be some that lead to the declared shape."""
        if not to.site.is_known(1):
            count = static_count(to.site.type(1))
            must_name(to, 1, rank, self.choices(static_shape(to.site.type(0)), to.type().static_shape, count))


def _put_in(shape: Sequence[D], axes: Sequence[int], rank: int) -> tuple[D | int, ...]:
    """A shape with axes of size 1."""
    dims = iter(shape)
    return tuple(1 if axis in axes else next(dims) for axis in range(rank))


def _without(shape: Sequence[Dim], axes: tuple[int, ...]) -> tuple[Dim, ...]:
    return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


def _taken_out(longer: tuple[int, ...], shorter: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
    """The sets of so many axes of size 1 without which `longer` is `shorter`."""
    sets = axes_choices(len(longer), count)
    return [axes for axes in sets if _without(longer, axes) == shorter and all(longer[axis] == 1 for axis in axes)]


class SameElements(Operator, abstract=True):
    """`shape(site)` says what the result's shape is; elements stay in row-major order."""

    fusion = INJECTIVE

    def shape(self, site: Site) -> Shape:
        raise NotImplementedError

    def infer(self, site: Site) -> list[Fact]:
        shape = self.shape(site)
        type = TensorType(site.type(0).dtype, shape)
        return [moved(site, type, lambda value: value.reshape(type.static_shape))]

    def lower(self, to: Lowering) -> None:
        x, type = to.input(0), to.type()
        if x.type.count != type.count:  # they are assumed to be equal
            to.require(x.type.count - type.count)
            to.require(type.count - x.type.count)
            x = x if x.is_dense else to.copy(x)
        to.set(0, to.reshape(x, type.shape))

    def gradient(self, back: Backward) -> None:
        back.give(0, back.reshape(back.of(), back.shape(0)))


@dataclass(frozen=True)
class Reshape(SameElements):
    versions = (1, 5, 13, 14, 19, 21, 23, 24, 25)
    allowzero: int = 0

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version == 1:
            node.attributes.pop("consumed_inputs", None)
            node.attribute_to_input("shape", 1)
        return make(cls, node)

    def shape(self, site: Site) -> Shape:
        if len(site.shape(1)) != 1:
            raise Invalid(f"the shape (operand 1) is {site.type(1)}, not a vector")
        if not site.is_known(1):
            rank = static(site.shape(1)[0])
            declared = site.open_shape(0, "the shape", [None] * rank) if rank > 1 else (product(site.shape(0)),)
            if not all(isinstance(dim, int) for dim in declared):
                return declared
            if site.shape(1) != (len(declared),):
                raise Invalid(f"a shape of {site.type(1)} does not lead to {show(declared)}, which the model declares")
            same_count(site.shape(0), declared)
            return declared
        return reshaped(site.shape(0), site.known(1, "the shape"), bool(self.allowzero))

    def lower(self, to: Lowering) -> None:
        if not to.site.is_known(1):
            if not to.type().is_static:
                to.set(0, self.measured(to))
                return
            formula = Formula(to)
            before = static_shape(to.site.type(0))
            for axis, (asked, size) in enumerate(zip(formula.elements(1), to.type().static_shape, strict=True)):
                fits = either([equals(asked, size), equals(asked, -1)])
                if not self.allowzero and axis < len(before) and before[axis] == size:
                    fits = either([fits, equals(asked, 0)])
                formula.require(fits)
            formula.check()
        super().lower(to)

    def measured(self, to: Lowering) -> View:
        """The elements in a shape that is found out at run time."""
        formula, x, shape = Formula(to), to.input(0), to.type().shape
        asked = formula.elements(1)
        if len(shape) == 1:
            formula.require(either([equals(asked[0], shape[0]), equals(asked[0], -1)]))
            formula.check()
            return to.reshape(x, shape)
        if not self.allowzero:
            for axis, dim in enumerate(x.shape[: len(asked)]):
                asked[axis] = apply("select", equals(asked[axis], 0), number(dim), asked[axis])
        count, one = number(x.type.count), number(1)
        others = reduce(multiplied, (apply("select", equals(dim, -1), one, dim) for dim in asked), one)
        rest = apply("div", count, apply("max", others, one))
        sizes = [apply("select", equals(dim, -1), rest, dim) for dim in asked]
        formula.require(apply("equal", reduce(multiplied, sizes, one), count))
        for dim, expr in zip(shape, sizes, strict=True):
            formula.settle(dim, expr)
        formula.check()
        steps = (multiplied(index(axis), size(step)) for axis, step in enumerate(dense_strides(shape)))
        place = reduce(lambda a, b: apply("add", a, b), steps, number(0))
        ins = [to.reshape(x, (x.type.count,)), to.map(place, [], shape)]
        return to.call(Gather((-1,)), ins, to.type())[0]


def multiplied(a: Expr, b: Expr) -> Expr:
    return apply("mul", a, b)


def reshaped(shape: Shape, wanted: Sequence[Dim], allow_zero: bool = False) -> Shape:
    """What Reshape makes of `shape`: 0 copies a dimension, -1 takes what is left."""
    result: list[Dim] = []
    for axis, dim in enumerate(wanted):
        if dim == 0 and not allow_zero:
            if axis >= len(shape):
                raise Invalid(f"the 0 at {axis} in {show(tuple(wanted))} copies a dimension that {show(shape)} lacks")
            dim = shape[axis]
        elif dim != -1 and bounds(dim)[1] < 0:
            raise Invalid(f"{show(tuple(wanted))} has a negative size")
        result.append(dim)
    free = [axis for axis, dim in enumerate(wanted) if dim == -1]
    if len(free) > 1:
        raise Invalid(f"{show(tuple(wanted))} leaves more than one dimension open")
    if free:
        if allow_zero and 0 in result:
            raise Invalid(f"{show(tuple(wanted))} has both 0 and -1, with allowzero")
        result[free[0]] = rest(shape, [*result[: free[0]], *result[free[0] + 1 :]])
    same_count(shape, tuple(result))
    return tuple(result)


def rest(shape: Shape, others: Sequence[Dim]) -> Dim:
    """What is left of the elements of `shape` for one more dimension beside `others`."""
    left = list(shape)
    divisors: list[Dim] = []
    for dim in others:  # equal symbols cancel; what they leave is divided as numbers
        if not isinstance(dim, int) and dim in left:
            left.remove(dim)
        else:
            divisors.append(dim)
    count, divisor = product(left), product(divisors)
    if divisor == 0:
        raise Invalid(f"a dimension of {show(shape)} beside {show(tuple(others))} could have any size")
    if isinstance(count, int) and isinstance(divisor, int) and count % divisor:
        raise Invalid(f"{show(shape)} does not divide by {show(tuple(others))}")
    return count // divisor


@dataclass(frozen=True)
class Flatten(SameElements):
    versions = (1, 9, 11, 13, 21, 23, 24, 25)
    axis: int = 1

    def shape(self, site: Site) -> Shape:
        shape = site.shape(0)
        if not -len(shape) <= self.axis <= len(shape):
            raise Invalid(f"axis {self.axis} is outside of {site.type(0)}")
        axis = self.axis + len(shape) if self.axis < 0 else self.axis
        return product(shape[:axis]), product(shape[axis:])


@dataclass(frozen=True)
class Squeeze(Axes, SameElements):
    def shape(self, site: Site) -> Shape:
        shape = site.shape(0)
        if not site.has(1):
            open_ = [dim for dim in shape if not isinstance(dim, int) and bounds(dim)[0] <= 1]
            if open_:
                raise Unsupported(f"whether dimension {open_[0]} is 1 is known only at run time", FIX_DIMENSIONS)
            return tuple(dim for dim in shape if dim != 1)
        if not site.is_known(1):
            return self.declared_shape(site)
        axes = normal_axes(site.known_ints(1, "the axes"), len(shape))
        for axis in axes:
            low, high = bounds(shape[axis])
            if not low <= 1 <= high:
                raise Invalid(f"axis {axis} of {site.type(0)} is not 1")  # one that may be is checked in the run
        return _without(shape, axes)

    def choices(self, before: tuple[int, ...], after: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
        return _taken_out(before, after, count)

    def lower(self, to: Lowering) -> None:
        self.check_axes(to, len(to.input(0).shape))
        super().lower(to)


@dataclass(frozen=True)
class Unsqueeze(Axes, SameElements):
    def shape(self, site: Site) -> Shape:
        shape = site.shape(0)
        if not site.is_known(1):
            return self.declared_shape(site) if is_declared(site) else open_dims(site, list(self.open(site).values()))
        wanted = site.known_ints(1, "the axes")
        rank = len(shape) + len(wanted)
        return _put_in(shape, normal_axes(wanted, rank), rank)

    def open(self, site: Site) -> dict[tuple[int, ...], tuple[int, ...]]:
        """The shapes that there can be, where nothing declares one."""
        before = site.type(0).static_shape
        rank = len(before) + static_count(site.type(1))
        return {axes: _put_in(before, axes, rank) for axes in axes_choices(rank, rank - len(before))}

    def choices(self, before: tuple[int, ...], after: tuple[int, ...], count: int) -> list[tuple[int, ...]]:
        return _taken_out(after, before, count)

    def lower(self, to: Lowering) -> None:
        rank = to.type().rank
        if not to.site.is_known(1) and not to.type().is_static:
            views = {axes: to.reshape(to.input(0), shape) for axes, shape in self.open(to.site).items()}
            to.set(0, named_view(to, 1, rank, views))
            return
        self.check_axes(to, rank)
        super().lower(to)
