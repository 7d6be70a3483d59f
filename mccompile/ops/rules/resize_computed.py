"""Resizing by scales, sizes or a region that are computed at run time: the tables of resize_tables.py as expressions.

Invariant: the same formulas in the same precision as there, so it makes no difference where the numbers come from. The
shape of the result is what the model declares, and is checked, or measured here.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import reduce

from ...base.dims import Dim, bounds, maximum, static, upper
from ...base.dtypes import DType, f32, f64, i32, i64
from ...base.records import dataclass
from ...base.tensor import TensorType
from ...expr.ir import Expr, apply, cast, index, literal, number, operand, size
from ...kinds.reduce import Reduce
from ...kinds.resize import Resize as ResizeKind
from ...program.ir import View
from .at_run_time import Formula, either, gathered
from .resize_tables import Axis, simplest


@dataclass(frozen=True)
class Scale:
    """A scale in float32, and the integers in float64 whose quotient it stands for."""

    rounded: Expr
    over: Expr
    under: Expr

    def instead(self, condition: Expr, other: Scale) -> Scale:
        """The other one where the condition is true."""
        pairs = ((other.rounded, self.rounded), (other.over, self.over), (other.under, self.under))
        return Scale(*(apply("select", condition, a, b) for a, b in pairs))


@dataclass(frozen=True)
class ComputedAxis:
    """One resized axis: sizes are dimensions, the rest are scalar expressions in f32."""

    axis: int
    size: Dim
    out: Dim
    scale: Scale
    start: Expr
    end: Expr


def _f(value: float | Dim) -> Expr:
    return literal(value, f32) if isinstance(value, int | float) else number(value, f32)


def _unless_one(dim: Dim, one: Expr, more: Expr) -> Expr:
    """`more`, but `one` where there is a single element."""
    if isinstance(dim, int):
        return one if dim == 1 else more
    return apply("select", apply("equal", size(dim), literal(1, i64)), one, more)


def _op(name: str, *args: Expr) -> Expr:
    return apply(name, *args)


def known_scale(size: Dim, out: Dim, scale: float | None = None, ratio: Fraction | None = None) -> Scale:
    """A scale that is a constant, or that of two sizes."""
    if scale is None:
        return scale_of_sizes(number(out, i64), size)
    if ratio is None and isinstance(size, int) and isinstance(out, int):
        ratio = Axis(0, size, out, scale).exact
    exact = ratio if ratio is not None else simplest(scale)
    return Scale(literal(scale, f32), *(literal(float(n), f64) for n in (exact.numerator, exact.denominator)))


def scale_of_sizes(out: Expr, size: Dim) -> Scale:
    before = maximum(size, 1)
    return Scale(_op("div", cast(out, f32), _f(before)), cast(out, f64), number(before, f64))


def scales_given(formula: Formula, operand_: int, sizes: list[tuple[int, Dim]]) -> list[Scale]:
    result = []
    for n, (before, after) in enumerate(sizes):
        given = cast(formula.raw(operand_, n), f32)
        meant = scale_of_sizes(number(after, i64), before)
        plain = Scale(given, cast(given, f64), literal(1, f64))
        found = plain.instead(_op("equal", given, meant.rounded), meant)
        result.append(replace(found, rounded=given))  # which is the same, and known before the size is
    return result


def check_scales(formula: Formula, axes: list[ComputedAxis]) -> None:
    for axis in axes:
        _settle(formula, axis, _op("floor", _op("mul", _f(axis.size), axis.scale.rounded)))
        formula.require(_op("greater", axis.scale.rounded, _f(0)))


def common_scale(formula: Formula, operand_: int, sizes: list[int], policy: str) -> Scale:
    """The one scale of all axes that keeps the aspect ratio."""
    asked = [scale_of_sizes(formula.element(operand_, n), before) for n, before in enumerate(sizes)]
    better = "less" if policy == "not_larger" else "greater"
    return reduce(lambda a, b: a.instead(_op(better, b.rounded, a.rounded), b), asked)


def check_rounded(formula: Formula, axes: list[ComputedAxis]) -> None:
    for axis in axes:
        _settle(formula, axis, _op("floor", _op("add", _op("mul", _f(axis.size), axis.scale.rounded), _f(0.5))))


def _settle(formula: Formula, axis: ComputedAxis, made: Expr) -> None:
    """The size in f32 is that of the result."""
    if isinstance(axis.out, int):
        formula.require(_op("equal", made, _f(axis.out)))
    else:
        formula.settle(axis.out, cast(made, i64))


def coordinate(mode: str, axis: ComputedAxis) -> Expr:
    """The place on the axis of x, for the element of the result at index(0)."""
    x, scale, before, out = cast(index(0), f32), axis.scale.rounded, _f(axis.size), _f(axis.out)
    centre = _op("div", _op("add", x, _f(0.5)), scale)
    half = _op("sub", centre, _f(0.5))
    match mode:
        case "half_pixel_symmetric":
            adjustment = _op("div", out, _op("mul", scale, before))
            return _op("add", _op("mul", _op("div", before, _f(2)), _op("sub", _f(1), adjustment)), half)
        case "pytorch_half_pixel":
            return _unless_one(axis.out, _f(0), half)
        case "asymmetric":
            return _op("div", x, scale)
        case "tf_half_pixel_for_nn":
            return centre
        case "align_corners":
            return _unless_one(axis.out, _f(0), _op("div", _op("mul", x, _f(axis.size - 1)), _f(axis.out - 1)))
        case "tf_crop_and_resize":
            last = _f(axis.size - 1)
            middle = _op("mul", _op("mul", _f(0.5), _op("add", axis.start, axis.end)), last)
            step = _op("div", _op("mul", _op("mul", x, _op("sub", axis.end, axis.start)), last), _f(axis.out - 1))
            return _unless_one(axis.out, middle, _op("add", _op("mul", axis.start, last), step))
    return half


def exact_coordinate(mode: str, axis: ComputedAxis) -> Expr:
    """The same where it is rounded; see `exact_coordinates`."""
    if mode == "tf_crop_and_resize":
        return cast(coordinate(mode, axis), f64)

    def d(value: float | Dim) -> Expr:
        return literal(value, f64) if isinstance(value, int | float) else number(value, f64)

    x, over, under = cast(index(0), f64), axis.scale.over, axis.scale.under
    middle = _op("add", _op("mul", d(2), x), d(1))
    twice = _op("mul", d(2), over)
    if mode == "half_pixel_symmetric":
        from_centre = _op("div", _op("mul", _op("sub", middle, d(axis.out)), under), twice)
        return _op("add", from_centre, _op("div", d(axis.size - 1), d(2)))
    if mode == "asymmetric":
        return _op("div", _op("mul", x, under), over)
    if mode == "align_corners":
        return _unless_one(axis.out, d(0), _op("div", _op("mul", x, d(axis.size - 1)), d(axis.out - 1)))
    centre = _op("div", _op("mul", middle, under), twice)
    half = _op("sub", centre, d(0.5))
    if mode == "pytorch_half_pixel":
        return _unless_one(axis.out, d(0), half)
    return centre if mode == "tf_half_pixel_for_nn" else half


def nearest_place(coordinates: str, axis: ComputedAxis, mode: str) -> Expr:
    """The element next to a coordinate."""
    if mode.startswith("round"):
        exact = exact_coordinate(coordinates, axis)
    else:
        exact = cast(coordinate(coordinates, axis), f64)
    half = literal(0.5, f64)
    match mode:
        case "round_prefer_floor":
            found = _op("ceil", _op("sub", exact, half))
        case "round_prefer_ceil":
            found = _op("floor", _op("add", exact, half))
        case "floor":
            found = _op("floor", exact)
        case "ceil":
            found = _op("ceil", exact)
        case _:  # "simple"
            found = _op("select", _op("less", axis.scale.rounded, _f(1)), _op("ceil", exact), _op("floor", exact))
    inside = _op("min", _op("max", found, literal(0, f64)), number(axis.size - 1, f64))
    return cast(inside, i64)


def resized_nearest(formula: Formula, x: View, axes: list[ComputedAxis], coordinates: str, mode: str) -> View:
    shape = tuple({axis.axis: axis.out for axis in axes}.get(n, dim) for n, dim in enumerate(x.shape))
    places = {axis.axis: formula.along(nearest_place(coordinates, axis, mode), axis.axis, shape) for axis in axes}
    return gathered(formula.to, x, places, shape)


@dataclass(frozen=True)
class Interpolation:
    mode: str  # linear or cubic
    coordinates: str
    coefficient: float
    exclude_outside: bool
    antialias: bool


def resized_weighted(
    formula: Formula,
    x: View,
    axes: list[ComputedAxis],
    how: Interpolation,
    accumulator: DType,
    epilogue: Expr | None,
) -> View:
    to, dtype = formula.to, x.buffer.dtype
    shape = tuple({axis.axis: axis.out for axis in axes}.get(n, dim) for n, dim in enumerate(x.shape))
    ins, counts = [x], []
    for axis in axes:
        positions, weights = _taps(formula, axis, how, accumulator)
        ins += [positions, weights]
        counts.append(static(positions.shape[1]))
    kind = ResizeKind(tuple(axis.axis for axis in axes), tuple(counts), accumulator, epilogue)
    return to.call(kind, ins, TensorType(dtype, shape))[0]


def _taps(formula: Formula, axis: ComputedAxis, how: Interpolation, accumulator: DType) -> tuple[View, View]:
    """Positions i32[out, taps] and weights."""
    reach = 2 if how.mode == "cubic" else 1
    one = literal(1, f64)
    stretch, most = one, 1.0
    if how.antialias:
        stretch = _op("max", one, _op("div", one, cast(axis.scale.rounded, f64)))
        most = max(1.0, upper(axis.size) / max(1, bounds(axis.out)[0]))  # no scale that leads to its sizes is smaller
    count = int(-(-2 * reach * most // 1)) + (1 if how.antialias else 0)
    place = cast(coordinate(how.coordinates, axis), f64)
    first = _op("add", _op("floor", _op("sub", place, _op("mul", literal(reach, f64), stretch))), one)
    at = _op("add", first, cast(index(1), f64))
    distance = _op("div", _op("abs", _op("sub", at, place)), stretch)
    zero, last = literal(0, f64), number(axis.size - 1, f64)
    weight = _cubic(distance, how.coefficient) if how.mode == "cubic" else _op("max", _op("sub", one, distance), zero)
    if how.exclude_outside:
        weight = _op("select", either([_op("less", at, zero), _op("greater", at, last)]), zero, weight)
    shape = (axis.out, count)
    positions = formula.map(cast(_op("max", _op("min", at, last), zero), i32), shape)
    weights = formula.map(weight, shape)
    if how.exclude_outside or how.antialias:
        kind = Reduce((1,), "add", f64, operand(0, f64))
        total = formula.to.call(kind, [weights], TensorType(f64, (axis.out, 1)))[0]
        safe = _op("select", _op("equal", operand(1, f64), zero), one, operand(1, f64))
        weights = formula.to.map(_op("div", operand(0, f64), safe), [weights, total], shape)
    return positions, formula.to.cast(weights, accumulator)


def _cubic(distance: Expr, a: float) -> Expr:
    def d(value: float) -> Expr:
        return literal(value, f64)

    inner = _op("sub", _op("mul", d(a + 2), distance), d(a + 3))
    near = _op("add", _op("mul", _op("mul", inner, distance), distance), d(1))
    far = _op("sub", _op("mul", _op("add", _op("mul", _op("sub", _op("mul", d(a), distance), d(5 * a)), distance),
                                   d(8 * a)), distance), d(4 * a))  # fmt: skip
    beyond = _op("select", _op("less", distance, d(2)), far, d(0))
    return _op("select", _op("less_equal", distance, d(1)), near, beyond)


def extrapolated(formula: Formula, view: View, axes: list[ComputedAxis], coordinates: str, value: Expr) -> View:
    """Elements whose place lies outside of x, replaced."""
    to, shape = formula.to, view.shape
    flags = []
    for axis in axes:
        place = coordinate(coordinates, axis)
        outside = either([_op("less", place, _f(0)), _op("greater", place, _f(axis.size - 1))])
        flags.append(formula.along(outside, axis.axis, shape))
    condition = either([operand(n + 1, flag.buffer.dtype) for n, flag in enumerate(flags)])
    return to.map(_op("select", condition, value, operand(0, view.buffer.dtype)), [view, *flags], shape)
