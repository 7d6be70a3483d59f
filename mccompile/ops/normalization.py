"""Normalizations that measure their own input: Layer-, RMS-, Instance-, Group-, MeanVariance- and LpNormalization, LRN.

All is computed in f32 (f64 for f64) and rounded once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.dims import product, static
from ..base.dtypes import DType, of_onnx
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr, apply, cast, literal, operand
from ..expr.powers import near_power, power
from ..graph.ir import Value
from ..kinds.normalize import Normalize
from ..kinds.pool import Pool
from ..program.ir import View
from .api import (
    Fact,
    Invalid,
    Lowering,
    OnnxNode,
    Operator,
    Site,
    Unsupported,
    make,
    normal_axes,
    normal_axis,
    same_type,
)
from .reduce import element_count, reduce_call
from .rules.elementwise import check_broadcast, check_dtypes, wide
from .rules.normalization_backward import Normalized, scaled_back

if TYPE_CHECKING:
    from .rules.backward import Backward


def normalized(
    to: Lowering, x: View, axes: tuple[int, ...], measure: str, epsilon: float, dtype: DType, scale_and_bias: list[View]
) -> View:
    """One call that normalizes, multiplies with the scale and adds the bias (views of x's shape; both optional)."""
    accumulator = wide(x.buffer.dtype)
    result = scaled(operand(0, accumulator), scale_and_bias)
    plain = accumulator is dtype and not scale_and_bias
    epilogue = None if plain else cast(result, dtype)
    kind = Normalize(axes, measure, accumulator, epsilon, epilogue)
    return to.call(kind, [x, *scale_and_bias], TensorType(dtype, x.shape))[0]


def scaled(value: Expr, scale_and_bias: list[View], first: int = 1) -> Expr:
    """value * scale + bias, these being operands from `first` on."""
    for position, (function, view) in enumerate(zip(("mul", "add"), scale_and_bias, strict=False), first):
        value = apply(function, value, cast(operand(position, view.buffer.dtype), value.dtype))
    return value


def of_channels(to: Lowering, index: int, shape: Shape) -> View:
    """Operand `index`, one element per channel, as a view of shape [N, C, ...]."""
    return to.reshape(to.input(index), (shape[1], *(1 for _ in shape[2:]))).broadcast_to(shape)


def check_vector(site: Site, index: int, count: object, what: str) -> None:
    if site.shape(index) != (count,):
        raise Invalid(f"the {what} is {site.type(index)}, not a vector of {count}")


@dataclass(frozen=True)
class _FromAxis(Operator, abstract=True):
    """Over all axes from `axis` on."""

    axis: int = -1
    epsilon: float = 1e-5
    stash_type: int = 1


class LayerNormalization(_FromAxis):
    """Results: the normalized tensor; optionally mean and 1 / deviation."""

    versions = (17,)

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        check_dtypes(self.name, "floats", [site.type(i) for i in range(len(site.facts)) if site.has(i)])
        first = normal_axis(self.axis, x.rank)
        for i in (1, 2):
            if site.has(i):
                check_broadcast(site.shape(i), x.shape, "the scale" if i == 1 else "the bias")
        stash = of_onnx(self.stash_type)
        if stash is None or not stash.is_float:
            raise Invalid(f"stash_type {self.stash_type} is not a float type")
        measure = TensorType(stash, (*x.shape[:first], *(1 for _ in x.shape[first:])))
        return [Fact(x), Fact(measure), Fact(measure)][: site.outputs]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        dtype, accumulator = x.buffer.dtype, wide(x.buffer.dtype)
        axes = tuple(range(normal_axis(self.axis, len(x.shape)), len(x.shape)))
        parts = [to.input(i).broadcast_to(x.shape) for i in (1, 2) if to.has(i)]
        if not to.wants(1) and not to.wants(2):
            to.set(0, normalized(to, x, axes, "standardize", self.epsilon, dtype, parts))
            return
        count = element_count(x.shape, axes, accumulator)
        element, total = cast(operand(0, dtype), accumulator), operand(0, accumulator)
        mean = reduce_call(to, axes, "add", element, [x], apply("div", total, count))
        off = apply("sub", element, operand(1, accumulator))
        spread = apply("add", apply("div", total, count), literal(self.epsilon, accumulator))
        inverse = apply("div", literal(1, accumulator), apply("sqrt", spread))
        middle = mean.broadcast_to(x.shape)
        deviation = reduce_call(to, axes, "add", apply("mul", off, off), [x, middle], inverse)
        value = scaled(apply("mul", off, operand(2, accumulator)), parts, first=3)
        to.set(0, to.map(cast(value, dtype), [x, mean, deviation, *parts], x.shape))
        for i, view in ((1, mean), (2, deviation)):
            if to.wants(i):
                to.set(i, to.cast(view, to.type(i).dtype))

    def gradient(self, back: Backward) -> None:
        if back.depends(1) or back.depends(2):
            back.refuse("mean and deviation as results have no rule for their gradient")
        rank = len(back.shape(0))
        axes = range(normal_axis(self.axis, rank), rank)
        scaled_back(back, Normalized.of(back, back.input(0), axes, self.epsilon), back.of())


class RMSNormalization(_FromAxis):
    """The result has the type of the scale."""

    versions = (23,)

    def infer(self, site: Site) -> list[Fact]:
        x, scale = site.type(0), site.type(1)
        check_dtypes(self.name, "floats", [x, scale], same=False)
        normal_axis(self.axis, x.rank)
        check_broadcast(scale.shape, x.shape, "the scale")
        return [Fact(TensorType(scale.dtype, x.shape))]

    def lower(self, to: Lowering) -> None:
        x, type = to.input(0), to.type()
        axes = tuple(range(normal_axis(self.axis, len(x.shape)), len(x.shape)))
        scale = to.input(1).broadcast_to(x.shape)
        to.set(0, normalized(to, x, axes, "rms", self.epsilon, type.dtype, [scale]))

    def gradient(self, back: Backward) -> None:
        rank = len(back.shape(0))
        if back.input(1).type.dtype is not back.input(0).type.dtype:
            back.refuse("x and scale of different types have no rule for their gradient", "cast the scale")
        axes = range(normal_axis(self.axis, rank), rank)
        scaled_back(back, Normalized.of(back, back.input(0), axes, self.epsilon, centred=False), back.of())


@dataclass(frozen=True)
class InstanceNormalization(Operator):
    versions = (6, 22)
    channels_last = True
    epsilon: float = 1e-5

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        check_dtypes(self.name, "floats", [x, site.type(1), site.type(2)])
        if x.rank < 3:
            raise Invalid(f"x {x} has no spatial axes")
        check_vector(site, 1, x.shape[1], "scale")
        check_vector(site, 2, x.shape[1], "bias")
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        parts = [of_channels(to, i, x.shape) for i in (1, 2)]
        axes = tuple(range(2, len(x.shape)))
        to.set(0, normalized(to, x, axes, "standardize", self.epsilon, x.buffer.dtype, parts))

    def gradient(self, back: Backward) -> None:
        shape = back.shape(0)
        normal = Normalized.of(back, back.input(0), range(2, len(shape)), self.epsilon)
        scaled_back(back, normal, back.of(), (shape[1], *(1 for _ in shape[2:])))


@dataclass(frozen=True)
class GroupNormalization(Operator):
    """Scale and bias have an element per channel. ONNX withdrew the version of opset 18, with one per group."""

    versions = (21,)
    channels_last = True
    num_groups: int
    epsilon: float = 1e-5
    stash_type: int = 1

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        check_dtypes(self.name, "floats", [x, site.type(1), site.type(2)])
        if x.rank < 2 or self.num_groups < 1:
            raise Invalid(f"x {x} has no {self.num_groups} groups of channels")
        channels = x.shape[1]
        if not isinstance(channels, int):
            raise Unsupported(f"groups of {channels} channels", "fix the dimension with --dim or --shape")
        if channels % self.num_groups:
            raise Invalid(f"{channels} channels do not divide into {self.num_groups} groups")
        for i, what in ((1, "scale"), (2, "bias")):
            check_vector(site, i, channels, what)
        return [Fact(x)]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        members = static(x.shape[1]) // self.num_groups
        grouped = to.reshape(x, (x.shape[0], self.num_groups, members, *x.shape[2:]))
        shape = (self.num_groups, members, *(1 for _ in x.shape[2:]))
        parts = [to.reshape(to.input(i), shape).broadcast_to(grouped.shape) for i in (1, 2)]
        axes = tuple(range(2, len(grouped.shape)))
        result = normalized(to, grouped, axes, "standardize", self.epsilon, x.buffer.dtype, parts)
        to.set(0, to.reshape(result, x.shape))

    def gradient(self, back: Backward) -> None:
        batch, channels, *space = back.shape(0)
        members = channels // self.num_groups
        grouped = (batch, self.num_groups, members, *space)
        normal = Normalized.of(back, back.reshape(back.input(0), grouped), range(2, len(grouped)), self.epsilon)
        scaled_back(back, normal, back.reshape(back.of(), grouped), (self.num_groups, members, *(1 for _ in space)))


@dataclass(frozen=True)
class MeanVarianceNormalization(Operator):
    """ONNX adds 1e-9 to the deviation; here its square is added to the variance, which differs only for deviations as
    small. Of the default axes, which are those of pictures, a tensor of lower rank has the first ones."""

    versions = (9, 13)
    axes: tuple[int, ...] = (0, 2, 3)

    def infer(self, site: Site) -> list[Fact]:
        check_dtypes(self.name, "floats", [site.type(0)])
        if not site.type(0).rank:
            raise Invalid("a scalar has no axis to normalize along")
        self.along(site.type(0).rank)
        return same_type(site)

    def along(self, rank: int) -> tuple[int, ...]:
        axes = [axis for axis in self.axes if axis < rank] if self.axes == (0, 2, 3) else self.axes
        return normal_axes(axes, rank)

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        to.set(0, normalized(to, x, self.along(len(x.shape)), "standardize", 1e-18, x.buffer.dtype, []))

    def gradient(self, back: Backward) -> None:
        normal = Normalized.of(back, back.input(0), self.along(len(back.shape(0))), 1e-18)
        back.give(0, normal.back_to_x(back, back.of()))


@dataclass(frozen=True)
class LpNormalization(Operator):
    versions = (1, 22)
    axis: int = -1
    p: int = 2

    def infer(self, site: Site) -> list[Fact]:
        check_dtypes(self.name, "floats", [site.type(0)])
        if not site.type(0).rank:
            raise Invalid("a scalar has no axis to normalize along")
        normal_axis(self.axis, site.type(0).rank)
        if self.p not in (1, 2):
            raise Invalid(f"p is {self.p}, not 1 or 2")
        return same_type(site)

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        axis = normal_axis(self.axis, len(x.shape))
        to.set(0, normalized(to, x, (axis,), f"l{self.p}", 0.0, x.buffer.dtype, []))

    def gradient(self, back: Backward) -> None:
        """0 where the norm is."""
        x, y, of = back.input(0), back.result(), back.of()
        axes = back.ints([self.axis])
        norm = back.op(f"ReduceL{self.p}", x, axes, keepdims=1)
        along = back.op("ReduceSum", back.op("Mul", y, of), axes, keepdims=1)
        element, value, given, part, size = (operand(i, x.type.dtype) for i in range(5))
        direction = value if self.p == 2 else apply("sign", element)
        slope = apply("div", apply("sub", given, apply("mul", direction, part)), size)
        zero = literal(0, x.type.dtype)
        expr = apply("select", apply("equal", size, zero), zero, slope)
        back.give(0, back.pointwise(expr, x, y, of, along, norm))


@dataclass(frozen=True)
class LRN(Operator):
    versions = (1, 13)
    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0

    def infer(self, site: Site) -> list[Fact]:
        check_dtypes(self.name, "floats", [site.type(0)])
        if site.type(0).rank < 2 or self.size < 1:
            raise Invalid(f"a window of {self.size} channels over {site.type(0)}")
        return same_type(site)

    def lower(self, to: Lowering) -> None:
        x, number = to.input(0), wide(to.input(0).buffer.dtype)
        batch, channels, *space = x.shape
        rows = (batch, 1, channels, product(space))
        pads = ((self.size - 1) // 2, 0, self.size // 2, 0)
        around = Pool("sum", (self.size, 1), (1, 1), (1, 1), pads, rows[2:], number)
        element, total = cast(operand(0, x.buffer.dtype), number), operand(1, number)
        squares = to.map(apply("mul", element, element), [x])
        (sums,) = to.call(around, [to.reshape(squares, rows)], TensorType(number, rows))
        base = apply("add", literal(self.bias, number), apply("mul", literal(self.alpha / self.size, number), total))
        result = apply("div", element, near_power(base, self.beta))
        to.set(0, to.map(cast(result, x.buffer.dtype), [x, to.reshape(sums, x.shape)], x.shape))

    def gradient(self, back: Backward) -> None:
        x, of = back.input(0), back.of()
        low, high = (self.size - 1) // 2, self.size // 2
        element, total, given, around = (operand(i, x.type.dtype) for i in range(4))
        factor, bias = (literal(value, x.type.dtype) for value in (self.alpha / self.size, self.bias))
        base = apply("add", bias, apply("mul", factor, total))
        squares = self._summed(back, back.op("Mul", x, x), low, high)
        share = apply("mul", apply("mul", given, element), power(base, -self.beta - 1))
        others = self._summed(back, back.pointwise(share, x, squares, of), high, low)
        twice = literal(2 * self.beta * self.alpha / self.size, x.type.dtype)
        direct = apply("mul", given, power(base, -self.beta))
        slope = apply("sub", direct, apply("mul", twice, apply("mul", element, around)))
        back.give(0, back.pointwise(slope, x, squares, of, others))

    def _summed(self, back: Backward, x: Value, low: int, high: int) -> Value:
        """Over so many channels before and behind each one."""
        batch, channels, *space = back.shape(0)
        rows = back.reshape(x, (batch, 1, channels, math.prod(space)))
        ones = back.constant(np.ones((1, 1, self.size, 1), x.type.dtype.numpy))
        return back.reshape(back.op("Conv", rows, ones, pads=(low, 0, high, 0)), back.shape(0))


@dataclass(frozen=True)
class BatchNormalization(Operator):
    """Of a trained network: (x - mean) * scale / sqrt(variance + epsilon) + bias, per channel. With `spatial` 0 (opsets
    7 and 8) the parameters have an element for every place as well."""

    versions = (1, 6, 7, 9, 14, 15)
    channels_last = True
    epsilon: float = 1e-5
    momentum: float = 0.9
    training_mode: int = 0
    spatial: int = 1

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version < 7:
            node.attributes.pop("consumed_inputs", None)
            node.attributes["training_mode"] = 0 if node.attributes.pop("is_test", 0) else 1
            if node.outputs == 1:  # nobody asks for new statistics: a network that was trained
                node.attributes["training_mode"] = 0
        elif node.version < 14 and node.outputs > 1:
            node.attributes["training_mode"] = 1
        return make(cls, node)

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        attributes: dict[str, Any] = {"epsilon": self.epsilon, "momentum": self.momentum}
        if self.training_mode:
            attributes["training_mode"] = 1
        return (attributes, None) if self.spatial else (attributes | {"spatial": 0}, 7)

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if (site.outputs > 1 and not self.training_mode) or (self.training_mode and not self.spatial):
            raise Unsupported("BatchNormalization with statistics of an old opset", "export the network for inference")
        check_dtypes(self.name, "floats", [site.type(i) for i in range(5)], same=False)
        if x.rank == 0:
            raise Invalid(f"x {x} has no channels")
        shape = (x.shape[1:2] if self.spatial else x.shape[1:]) or (1,)  # of rank 1 it has one channel
        for i, what in enumerate(("scale", "bias", "mean", "variance"), 1):
            if site.shape(i) != shape:
                raise Invalid(f"the {what} {site.type(i)} does not fit x {x}")
        return [Fact(x), *[Fact(site.type(3)), Fact(site.type(4))] * 2][: site.outputs]  # before opset 14: 5

    def statistics(self, to: Lowering, x: View, mean: View, variance: View) -> tuple[View, View]:
        """Mean and variance of this batch; the results that follow from them and the ones so far."""
        work = wide(x.buffer.dtype)
        axes = tuple(axis for axis in range(len(x.shape)) if axis != 1)
        count = element_count(x.shape, axes, work)
        average = apply("div", operand(0, work), count)
        element = cast(operand(0, x.buffer.dtype), work)
        middle = reduce_call(to, axes, "add", element, [x], average)
        off = apply("sub", element, operand(1, work))
        spread = reduce_call(to, axes, "add", apply("mul", off, off), [x, middle.broadcast_to(x.shape)], average)
        found = to.reshape(middle, x.shape[1:2] or (1,)), to.reshape(spread, x.shape[1:2] or (1,))
        for number, (before, now) in enumerate(zip((mean, variance), found, strict=True), 1):
            if to.wants(number):
                kept = apply("mul", cast(operand(0, before.buffer.dtype), work), literal(self.momentum, work))
                new = apply("mul", operand(1, work), literal(1 - self.momentum, work))
                to.set(number, to.map(cast(apply("add", kept, new), before.buffer.dtype), [before, now]))
        return found

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        scale, bias, mean, variance = (to.input(i) for i in range(1, 5))
        if self.training_mode:
            mean, variance = self.statistics(to, x, mean, variance)
            for number, view in ((3, mean), (4, variance)):  # which a backward pass of old would read
                if to.wants(number):
                    to.set(number, to.map(cast(operand(0, view.buffer.dtype), to.input(number).buffer.dtype), [view]))
        accumulator = wide(x.buffer.dtype)

        def read(position: int, view: View) -> Expr:
            return cast(operand(position, view.buffer.dtype), accumulator)

        deviation = apply("sqrt", apply("add", read(1, variance), literal(self.epsilon, accumulator)))
        factor = to.map(apply("div", read(0, scale), deviation), [scale, variance])
        parts = [mean, factor, bias]
        if self.spatial:
            parts = [to.reshape(view, (*x.shape[1:2], *(1 for _ in x.shape[2:]))) for view in parts]
        off = apply("sub", read(0, x), read(1, mean))
        value = apply("add", apply("mul", off, operand(2, accumulator)), read(3, bias))
        to.set(0, to.map(cast(value, x.buffer.dtype), [x, *parts], x.shape))

    def gradient(self, back: Backward) -> None:
        x, of, shape = back.input(0), back.of(), back.shape(0)
        around = (*shape[1:2], *(1 for _ in shape[2:])) if self.spatial else shape[1:]
        if any(back.depends(number) for number in range(1, 5)):
            back.refuse("statistics as results have no rule for their gradient", "let nothing depend on them")
        if self.training_mode:
            back.nothing(3, 4)
            axes = [axis for axis in range(len(shape)) if axis != 1]
            scaled_back(back, Normalized.of(back, x, axes, self.epsilon), of, around)
            return
        scale, mean, variance = (back.reshape(back.input(i), around) for i in (1, 3, 4))
        dtype = x.type.dtype
        spread = apply("sqrt", apply("add", operand(0, dtype), literal(self.epsilon, dtype)))
        inverse = back.pointwise(apply("div", literal(1, dtype), spread), variance)
        factor = back.op("Mul", scale, inverse)
        if back.wants(0):
            back.give(0, back.op("Mul", of, factor))
        back.give(2, of, around)
        if back.wants(3):
            total = back.reduced(of, around)
            back.give(3, back.op("Neg", back.op("Mul", total, factor)), around)
        if back.wants(1) or back.wants(4):
            along = back.op("Mul", back.reduced(back.op("Mul", of, back.op("Sub", x, mean)), around), inverse)
            back.give(1, along, around)
            if back.wants(4):
                half = back.scaled(back.op("Mul", back.op("Mul", factor, inverse), along), -0.5)
                back.give(4, half, around)
