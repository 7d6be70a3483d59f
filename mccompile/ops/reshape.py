"""Reshape, Flatten, Squeeze, Unsqueeze: the same elements in another shape. Views wherever strides can say it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.dims import Dim, bounds, product
from ..base.tensor import Shape, TensorType
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make, normal_axes
from .shapes import FIX_DIMENSIONS, moved, same_count, show


class SameElements(Operator):
    """`shape(site)` says what the result's shape is; elements stay in row-major order."""

    fusion = INJECTIVE

    def shape(self, site: Site) -> Shape:
        raise NotImplementedError

    def infer(self, site: Site) -> list[Fact]:
        shape = self.shape(site)
        type = TensorType(site.type(0).dtype, shape)
        return [moved(site, type, lambda value: value.reshape(type.static_shape))]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.reshape(to.input(0), to.type().shape))


@dataclass(frozen=True)
class Reshape(SameElements):
    name = "Reshape"
    versions = (5, 13, 14, 19, 21, 23, 24, 25)
    allowzero: int = 0

    def shape(self, site: Site) -> Shape:
        if len(site.shape(1)) != 1:
            raise Invalid(f"the shape (operand 1) is {site.type(1)}, not a vector")
        return reshaped(site.shape(0), site.known(1, "the shape"), bool(self.allowzero))


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
    name = "Flatten"
    versions = (1, 9, 11, 13, 21, 23, 24, 25)
    axis: int = 1

    def shape(self, site: Site) -> Shape:
        shape = site.shape(0)
        if not -len(shape) <= self.axis <= len(shape):
            raise Invalid(f"axis {self.axis} is outside of {site.type(0)}")
        axis = self.axis + len(shape) if self.axis < 0 else self.axis
        return product(shape[:axis]), product(shape[axis:])


@dataclass(frozen=True)
class Squeeze(SameElements):
    name = "Squeeze"
    versions = (1, 11, 13, 21, 23, 24, 25)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        node.attribute_to_input("axes", 1)
        return make(cls, node)

    def shape(self, site: Site) -> Shape:
        shape = site.shape(0)
        if not site.has(1):
            open_ = [dim for dim in shape if not isinstance(dim, int) and bounds(dim)[0] <= 1]
            if open_:
                raise Unsupported(f"whether dimension {open_[0]} is 1 is known only at run time", FIX_DIMENSIONS)
            return tuple(dim for dim in shape if dim != 1)
        axes = normal_axes(site.known_ints(1, "the axes"), len(shape))
        for axis in axes:
            low, high = bounds(shape[axis])
            if not low <= 1 <= high:
                raise Invalid(f"axis {axis} of {site.type(0)} is not 1")
            if shape[axis] != 1:
                raise Unsupported(f"whether dimension {shape[axis]} is 1 is known only at run time", FIX_DIMENSIONS)
        return tuple(dim for axis, dim in enumerate(shape) if axis not in axes)


@dataclass(frozen=True)
class Unsqueeze(SameElements):
    name = "Unsqueeze"
    versions = (1, 11, 13, 21, 23, 24, 25)

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        node.attribute_to_input("axes", 1)
        return make(cls, node)

    def shape(self, site: Site) -> Shape:
        shape = site.shape(0)
        wanted = site.known_ints(1, "the axes")
        rank = len(shape) + len(wanted)
        axes = normal_axes(wanted, rank)
        dims = iter(shape)
        return tuple(1 if axis in axes else next(dims) for axis in range(rank))
