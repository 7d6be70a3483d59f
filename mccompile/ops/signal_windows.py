"""HannWindow, HammingWindow, BlackmanWindow: sums of cosines over the positions of a window."""

from __future__ import annotations

import math
from typing import ClassVar

from ..base.dtypes import DType, f64, i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast, index, literal
from .api import Fact, Invalid, Lowering, Operator, Site, Unsupported
from .quantize import named_dtype
from .rules.at_run_time import Formula, must_equal, static_count
from .rules.known_shapes import scalar


class Window(Operator, abstract=True):
    """`weights[n]` of cos(2 pi n i / size), with signs that alternate. A periodic window is one element longer than
    what is left of it."""

    weights: ClassVar[tuple[float, ...]] = ()
    output_datatype: int
    periodic: int

    def infer(self, site: Site) -> list[Fact]:
        if static_count(site.type(0)) != 1:
            raise Invalid(f"the size is {site.type(0)}, not a scalar")
        dtype: DType = named_dtype(self.output_datatype, "output_datatype")
        if dtype.kind not in ("float", "int", "uint") or dtype.is_packed:
            raise Unsupported(f"a window of {dtype}")
        if not site.is_known(0):
            declared = site.declared(0, "the size")
            if len(declared) != 1:
                raise Invalid(f"a window is a vector, the model declares {declared}")
            return [Fact(TensorType(dtype, declared))]
        return [Fact(TensorType(dtype, (scalar(site, 0, "the size"),)))]

    def lower(self, to: Lowering) -> None:
        type = to.type()
        if not to.site.is_known(0):
            must_equal(to, 0, type.static_shape)
        formula = Formula(to)
        size = cast(formula.element(0), f64) if not isinstance(type.shape[0], int) else _number(type.shape[0])
        period = size if self.periodic else apply("sub", size, _number(1))
        angle = apply("div", apply("mul", _number(2 * math.pi), cast(index(0), f64)), period)
        total: Expr = _number(self.weights[0])
        for order, weight in enumerate(self.weights[1:], 1):
            term = apply("mul", _number(weight), apply("cos", apply("mul", _number(order), angle)))
            total = apply("sub" if order % 2 else "add", total, term)
        alone = apply("equal", period, _number(0))  # a symmetric window of one element
        to.set(0, formula.map(cast(apply("select", alone, _number(1), total), type.dtype), type.shape))


def _number(value: float) -> Expr:
    return literal(value, f64)


_LN10 = _number(math.log(10))


@dataclass(frozen=True)
class HannWindow(Window):
    versions = (17,)
    weights = (0.5, 0.5)
    output_datatype: int = 1
    periodic: int = 1


@dataclass(frozen=True)
class HammingWindow(Window):
    versions = (17,)
    weights = (25 / 46, 21 / 46)
    output_datatype: int = 1
    periodic: int = 1


@dataclass(frozen=True)
class BlackmanWindow(Window):
    versions = (17,)
    weights = (0.42, 0.5, 0.08)
    output_datatype: int = 1
    periodic: int = 1


@dataclass(frozen=True)
class MelWeightMatrix(Operator):
    """Triangular filters that are even on the mel scale. The matrix that the numbers lead to must be the declared one
    where they are computed at run time."""

    no_gradient = "filters follow from frequencies in steps"
    versions = (17,)
    output_datatype: int = 1

    def infer(self, site: Site) -> list[Fact]:
        dtype = named_dtype(self.output_datatype, "output_datatype")
        if dtype.kind not in ("float", "int", "uint") or dtype.is_packed:
            raise Unsupported(f"a matrix of {dtype}")
        if any(static_count(site.type(i)) != 1 for i in range(5)):
            raise Invalid("the operands must be scalars")
        if site.is_known(0, 1):
            bins, length = (site.known_ints(i, "a size")[0] for i in (0, 1))
            return [Fact(TensorType(dtype, (length // 2 + 1, bins)))]
        declared = site.declared(0, "a size")
        if len(declared) != 2:
            raise Invalid(f"the result is a matrix, the model declares {declared}")
        return [Fact(TensorType(dtype, declared))]

    def lower(self, to: Lowering) -> None:
        type, formula = to.type(), Formula(to)
        rows, columns = type.static_shape
        length, rate = formula.element(1), cast(formula.element(2), f64)
        if not to.site.is_known(0, 1):
            formula.require(apply("equal", formula.element(0), literal(columns, i64)))
            half = apply("add", apply("div", length, literal(2, i64)), literal(1, i64))
            formula.require(apply("equal", half, literal(rows, i64)))
            formula.check()
        low, high = (_mel(cast(formula.raw(i), f64)) for i in (3, 4))
        step = apply("div", apply("sub", high, low), _number(columns + 2))
        wide_length = cast(length, f64)

        def bin_of(offset: int) -> Expr:
            place = apply("add", cast(index(1), f64), _number(offset))
            mel = apply("add", apply("mul", place, step), low)
            growth = apply("expm1", apply("mul", apply("div", mel, _number(2595)), _LN10))
            hertz = apply("mul", _number(700), growth)
            return apply("floor", apply("div", apply("mul", apply("add", wide_length, _number(1)), hertz), rate))

        left, centre, right = bin_of(0), bin_of(1), bin_of(2)
        row = cast(index(0), f64)
        rise, fall = apply("sub", centre, left), apply("sub", right, centre)
        up = apply("div", apply("sub", row, left), rise)
        down = apply("div", apply("sub", right, row), fall)
        zero, one = _number(0), _number(1)
        rising = apply("and", apply("greater_equal", row, left), apply("less_equal", row, centre))
        falling = apply("and", apply("greater_equal", row, centre), apply("less", row, right))
        peak = apply("and", apply("equal", rise, zero), apply("equal", row, centre))
        rising = apply("and", rising, apply("greater", rise, zero))
        value = apply("select", falling, down, zero)
        value = apply("select", rising, up, value)
        value = apply("select", peak, one, value)
        to.set(0, formula.map(cast(value, type.dtype), type.shape))


def _mel(hertz: Expr) -> Expr:
    return apply("div", apply("mul", _number(2595), apply("log1p", apply("div", hertz, _number(700)))), _LN10)
