"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear as elementwise expressions.

Scale and zero point are one for all, one per position of an axis, or one per block along it. Quotients are rounded to
the nearest, halves to even, and saturate; the arithmetic is f32 unless the operator asks for a narrower one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from ..base.dims import Dim, ceil_div, static
from ..base.dtypes import DType, f32, f64, i32, of_onnx, u8
from ..base.records import dataclass
from ..base.tensor import Shape, TensorType
from ..expr.ir import Expr, apply, cast, literal, operand
from ..kinds.concat import Concat
from ..program.ir import View
from .api import INJECTIVE, Fact, Invalid, Lowering, Operator, Site, Unsupported, normal_axis
from .reduce import reduce_call
from .rules.elementwise import wide

_FIXED_POINT = ("i8", "u8", "i16", "u16", "i4", "u4", "i2", "u2")
_FLOATS = ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1")


def quantized(x: Expr, scale: Expr, zero: Expr | None, target: DType, precision: DType, saturate: bool = True) -> Expr:
    """saturate(round(x / scale) + zero); the quotient has the given precision."""
    quotient = apply("div", cast(x, precision), cast(scale, precision))
    work = wide(precision)
    if not target.is_integer:
        return cast(shifted(cast(quotient, work), zero), target, saturate)
    whole = shifted(apply("round_even", cast(quotient, work)), zero)
    inside = apply("max", apply("min", whole, literal(target.high, work)), literal(target.low, work))
    return cast(inside, target)


def shifted(value: Expr, zero: Expr | None) -> Expr:
    return value if zero is None else apply("add", value, cast(zero, value.dtype))


def dequantized(x: Expr, scale: Expr, zero: Expr | None, target: DType) -> Expr:
    """(x - zero) * scale; integers are subtracted as integers."""
    work = i32 if x.dtype.is_integer else f32
    value = cast(x, work)
    if zero is not None:
        value = apply("sub", value, cast(zero, work))
    return cast(apply("mul", cast(value, f32), cast(scale, f32)), target)


@dataclass(frozen=True)
class Linear(Operator, abstract=True):
    """Operands x, scale, zero point; how the last two spread over x."""

    versions: ClassVar[tuple[int, ...]] = (10, 13, 19, 21, 23, 24, 25, 28)
    fusion: ClassVar[str] = INJECTIVE
    axis: int = 1
    block_size: int = 0
    output_dtype: int = 0

    def check(self, site: Site) -> None:
        """Raises Invalid where scale and zero point do not fit x."""
        x, scale = site.type(0), site.type(1)
        if not (scale.dtype.is_float or scale.dtype is i32):
            raise Invalid(f"the scale is {scale}")
        one_each = site.has(2) and site.type(2).count == scale.count == 1
        if site.has(2) and site.shape(2) != scale.shape and not one_each:
            raise Invalid(f"the zero point {site.type(2)} has not the shape of the scale {scale}")
        if scale.count == 1 and scale.rank < 2:
            return
        axis = self.along(scale.shape, x.shape)
        if self.block_size == 0:
            if scale.shape != (x.shape[axis],):
                raise Invalid(f"the scale {scale} does not fit axis {axis} of x {x}")
            return
        size = x.shape[axis]
        if not isinstance(size, int):
            raise Unsupported(f"blocks along the free dimension {size}", "fix it with --dim or --shape")
        if self.block_size < 0:
            raise Invalid(f"block_size is {self.block_size}")
        if scale.shape != (*x.shape[:axis], ceil_div(size, self.block_size), *x.shape[axis + 1 :]):
            raise Invalid(f"the scale {scale} does not fit x {x} in blocks of {self.block_size} along axis {axis}")

    def along(self, scale: Shape, x: Shape) -> int:
        """The axis that scales belong to; a vector has but one."""
        return 0 if len(x) == 1 else normal_axis(self.axis, len(x))

    def spread(self, to: Lowering, element: Callable[[list[Expr]], Expr]) -> View:
        """`element` over x, scale and zero point, each parameter at all places it is for."""
        x, parameters = to.input(0), [to.input(i) for i in (1, 2) if to.has(i)]
        shape = parameters[0].shape
        if to.site.type(1).count == 1 and len(shape) < 2:
            return self.mapped(to, element, x, [to.reshape(view, ()) for view in parameters])
        axis = self.along(shape, x.shape)
        if self.block_size == 0:
            column = (x.shape[axis], *(1 for _ in x.shape[axis + 1 :]))
            return self.mapped(to, element, x, [to.reshape(view, column) for view in parameters])
        size, block = static(x.shape[axis]), self.block_size
        whole = size // block
        pieces: list[View] = []
        if whole:
            cut = (*x.shape[:axis], whole, block, *x.shape[axis + 1 :])
            blocks = [unsqueezed(view.sliced(axis, 0, whole), axis + 1) for view in parameters]
            result = self.mapped(to, element, to.reshape(x.sliced(axis, 0, whole * block), cut), blocks)
            pieces.append(to.reshape(result, (*x.shape[:axis], whole * block, *x.shape[axis + 1 :])))
        if size % block:
            last = [view.sliced(axis, whole, 1) for view in parameters]
            pieces.append(self.mapped(to, element, x.sliced(axis, whole * block, size % block), last))
        return pieces[0] if len(pieces) == 1 else to.call(Concat(axis), pieces, to.type())[0]

    def mapped(self, to: Lowering, element: Callable[[list[Expr]], Expr], x: View, parameters: list[View]) -> View:
        ins = [x, *parameters]
        return to.map(element([operand(i, view.buffer.dtype) for i, view in enumerate(ins)]), ins, x.shape)


def unsqueezed(view: View, axis: int) -> View:
    shape: list[Dim] = list(view.shape)
    strides: list[Dim] = list(view.strides)
    shape.insert(axis, 1)
    strides.insert(axis, 0)
    return replace(view, shape=tuple(shape), strides=tuple(strides))


def named_dtype(number: int, what: str) -> DType:
    found = of_onnx(number)
    if found is None:
        raise Unsupported(f"{what} {number} is not an element type that is known")
    return found


@dataclass(frozen=True)
class QuantizeLinear(Linear):
    quantizes = True
    no_gradient = "it rounds to integers, which change in steps"
    saturate: int = 1
    precision: int = 0

    def target(self, site: Site) -> DType:
        asked = named_dtype(self.output_dtype, "output_dtype") if self.output_dtype else None
        target = site.type(2).dtype if site.has(2) else asked or u8
        if asked not in (None, target):
            raise Invalid(f"output_dtype is {asked}, but the zero point is {target}")
        if target.name not in (*_FIXED_POINT, *_FLOATS):
            raise Invalid(f"{target} is not a type to quantize to")
        return target

    def computed(self, site: Site) -> DType:
        """The type of the quotient."""
        if self.precision:
            return named_dtype(self.precision, "precision")
        scale = site.type(1).dtype
        if scale is i32:
            return f64
        return f32 if scale.bits < 16 else scale

    def infer(self, site: Site) -> list[Fact]:
        self.check(site)
        x = site.type(0)
        if not (x.dtype.is_float or x.dtype is i32):
            raise Invalid(f"x is {x}")
        if not self.computed(site).is_float:
            raise Invalid(f"precision {self.precision} is not a float type")
        return [Fact(replace(x, dtype=self.target(site)))]

    def lower(self, to: Lowering) -> None:
        target, precision = self.target(to.site), self.computed(to.site)

        def element(args: list[Expr]) -> Expr:
            zero = args[2] if len(args) > 2 else None
            return quantized(args[0], args[1], zero, target, precision, bool(self.saturate))

        to.set(0, self.spread(to, element))


class DequantizeLinear(Linear):
    no_gradient = "what it makes floats of are integers, and they and their scales are not learned"

    def target(self, site: Site) -> DType:
        target = named_dtype(self.output_dtype, "output_dtype") if self.output_dtype else site.type(1).dtype
        if not target.is_float or target.bits < 16:
            raise Invalid(f"the result cannot be {target}", "give output_dtype")
        return target

    def infer(self, site: Site) -> list[Fact]:
        self.check(site)
        x = site.type(0)
        if x.dtype.name not in (*_FIXED_POINT, *_FLOATS, "i32"):
            raise Invalid(f"x is {x}, which is not quantized")
        if site.has(2) and site.type(2).dtype is not x.dtype:
            raise Invalid(f"the zero point is {site.type(2)}, but x is {x}")
        return [Fact(replace(x, dtype=self.target(site)))]

    def lower(self, to: Lowering) -> None:
        target = self.target(to.site)

        def element(args: list[Expr]) -> Expr:
            return dequantized(args[0], args[1], args[2] if len(args) > 2 else None, target)

        to.set(0, self.spread(to, element))


@dataclass(frozen=True)
class RoundingDequantizeLinear(DequantizeLinear):
    """Of weights whose product may round the other operand to int8: what the file says so of reads as this, which
    block_products understands. Else it is the same."""

    domain = "mccompile"
    versions = (1,)


@dataclass(frozen=True)
class DynamicQuantizeLinear(Operator):
    """Results: the quantized tensor, its scale, its zero point. Where all elements are zero, the scale is 1."""

    versions = (11,)
    quantizes = True
    no_gradient = "it rounds to integers, which change in steps"

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        if x.dtype is not f32:
            raise Invalid(f"x is {x}, not f32")
        return [Fact(replace(x, dtype=u8)), Fact(TensorType(f32, ())), Fact(TensorType(u8, ()))][: site.outputs]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        axes = tuple(range(len(x.shape)))
        a, b, zero = operand(0, f32), operand(1, f32), literal(0, f32)
        low = to.reshape(reduce_call(to, axes, "min", a, [x], apply("min", a, zero)), ())
        high = to.reshape(reduce_call(to, axes, "max", a, [x], apply("max", a, zero)), ())
        step = apply("div", apply("sub", b, a), literal(255, f32))
        scale = to.map(apply("select", apply("equal", a, b), literal(1, f32), step), [low, high])
        point = apply("round_even", apply("div", apply("sub", zero, a), b))
        inside = apply("max", apply("min", point, literal(255, f32)), zero)
        zero_point = to.map(cast(inside, u8), [low, scale])
        to.set(0, to.map(quantized(a, b, operand(2, u8), u8, f32), [x, scale, zero_point], x.shape))
        for i, view in ((1, scale), (2, zero_point)):
            if to.wants(i):
                to.set(i, view)
