"""What is known of numbers before a run: from where to where they lie, and whether one may be a NaN.

Invariant: sound for all elements, as far as constants are within what `of` says of them. Integers are exact; of floats
an infinite bound says nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import inf

from ..base.dims import Dim, bounds
from ..base.dtypes import DType, bool_, f32, f64, u8
from ..base.records import dataclass
from ..base.tensor import Shape
from .intervals import applied, converted, of_type
from .ir import Apply, Cast, Expr, Index, Literal, Operand, Size, apply, cast

_COMPARED: dict[str, Callable[[Known, Known], tuple[bool, bool]]] = {  # certainly so, certainly not so
    "less": lambda a, b: (a.high < b.low, a.low >= b.high),
    "less_equal": lambda a, b: (a.high <= b.low, a.low > b.high),
    "greater": lambda a, b: (a.low > b.high, a.high <= b.low),
    "greater_equal": lambda a, b: (a.low >= b.high, a.high < b.low),
    "equal": lambda a, b: (a.low == a.high == b.low == b.high, a.high < b.low or a.low > b.high),
}


@dataclass(frozen=True)
class Known:
    low: float
    high: float
    nan: bool = False
    of: frozenset[Hashable] = frozenset()  # constants that this rests on


def unknown(dtype: DType) -> Known:
    """Of what lies in memory: a bool that somebody else wrote may be any byte."""
    found = of_type(u8 if dtype is bool_ else dtype)
    return Known(-inf, inf, nan=True) if found is None else Known(*found)


def union(parts: Sequence[Known]) -> Known:
    low, high = min(part.low for part in parts), max(part.high for part in parts)
    return Known(low, high, any(part.nan for part in parts), _of(parts))


def position(size: Dim) -> Known:
    """Along an axis."""
    return Known(0, max(bounds(size)[1] - 1, 0))


def sums(element: Known, most: int, dtype: DType) -> Known:
    """Of any number of elements up to `most`, in any order; of floats as they are rounded, and their means as well."""
    low, high = most * min(element.low, 0) if most else 0, most * max(element.high, 0) if most else 0
    if dtype.is_float:
        is_finite = dtype in (f32, f64) and not element.nan and most < 2**20 and max(-low, high) < 1e37
        return Known(2 * low, 2 * high, False, element.of) if is_finite else unknown(dtype)
    whole = unknown(dtype)
    return Known(low, high, False, element.of) if whole.low <= low and high <= whole.high else whole


def known(expr: Expr, given: Sequence[Known], shape: Shape) -> Known:
    """Of what an expression gives, whose operands are these, for a result of this shape."""
    match expr:
        case Operand():
            return given[expr.index]
        case Literal() if expr.value == expr.value:
            return Known(expr.value, expr.value)
        case Index():
            return position(shape[expr.axis])
        case Size():
            return Known(*bounds(expr.dim))
    found = [known(each, given, shape) for each in expr.args]
    match expr:
        case Cast():
            return _cast(expr, found[0])
        case Apply(function="select"):
            condition, *ways = found
            taken = [way for way, is_open in zip(ways, (condition.high, not condition.low), strict=True) if is_open]
            return union(taken) if len(taken) > 1 else _also(taken[0], [condition])
        case Apply():
            result = _applied(expr, found)
            says_nothing = result == (Known(0, 1) if expr.dtype is bool_ else unknown(expr.dtype))
            return result if says_nothing else _also(result, found)
    return unknown(expr.dtype)


def open_ways(expr: Expr, given: Sequence[Known], shape: Shape) -> tuple[Expr, frozenset[Hashable]]:
    """The expression without choices that are always made in one way, and the constants that this rests on."""
    if isinstance(expr, Apply) and expr.function == "select":
        condition = known(expr.arguments[0], given, shape)
        if condition.low == condition.high:
            inner, rests = open_ways(expr.arguments[1 if condition.low else 2], given, shape)
            return inner, rests | condition.of
    found = [open_ways(each, given, shape) for each in expr.args]
    rests = frozenset(each for _, of in found for each in of)
    match expr:
        case Apply():
            return apply(expr.function, *(each for each, _ in found)), rests
        case Cast():
            return cast(found[0][0], expr.dtype, expr.saturate), rests
    return expr, rests


def _of(parts: Iterable[Known]) -> frozenset[Hashable]:
    return frozenset(each for part in parts for each in part.of)


def _also(found: Known, parts: Iterable[Known]) -> Known:
    return Known(found.low, found.high, found.nan, found.of | _of(parts))


def _applied(expr: Apply, found: Sequence[Known]) -> Known:
    name, dtype = expr.function, expr.args[0].dtype
    if name in _COMPARED and dtype.kind != "string":
        yes, no = _COMPARED[name](*found)
        return Known(int(yes and not any(each.nan for each in found)), int(not no))
    if name == "is_nan":
        return Known(0, int(found[0].nan))
    if name == "not":
        return Known(int(found[0].high == 0), int(found[0].low == 0))
    if name in ("and", "or"):
        choose = min if name == "and" else max
        return Known(choose(each.low > 0 for each in found), choose(each.high > 0 for each in found))
    if expr.dtype is bool_:
        return Known(0, 1)
    if expr.dtype.is_integer and all(each.dtype.is_integer for each in expr.args):
        pair, _ = applied(name, [(int(each.low), int(each.high)) for each in found], expr.dtype)
        return unknown(expr.dtype) if pair is None else Known(*pair)
    return unknown(expr.dtype)


def _cast(expr: Cast, found: Known) -> Known:
    source = expr.argument.dtype
    if not source.is_integer and source is not bool_:
        return unknown(expr.dtype)
    if expr.dtype in (f32, f64):
        number = expr.dtype.numpy.type
        return Known(float(number(found.low)), float(number(found.high)), False, found.of)
    pair, _ = converted((int(found.low), int(found.high)), expr.dtype)
    return unknown(expr.dtype) if pair is None else Known(*pair, False, found.of)
