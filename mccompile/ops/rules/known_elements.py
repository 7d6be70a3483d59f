"""Elementwise expressions over values known at compile time: integers, bools and dimensions.

Invariant: a result is given only where it is certain for every size that free dimensions may take; overflow and
division by what may be zero give None, and the value then counts as unknown. So do floats, but for whole numbers that
their type holds exactly: exporters bring sizes through floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ...base.dims import Dim, bounds, maximum, minimum
from ...base.dtypes import DType, bool_
from ...base.tensor import Shape
from ...expr.ir import Apply, Cast, Expr, Literal, Operand, operands_used
from ...graph.known import may_be_known


def known_result(expr: Expr, values: Sequence[np.ndarray | None], shape: Shape) -> np.ndarray | None:
    """The elements of the result over `shape`, to which the operands broadcast; None where they do not follow."""
    sizes = [dim for dim in shape if isinstance(dim, int)]
    if len(sizes) != len(shape) or not may_be_known(expr.dtype, math.prod(sizes)):
        return None
    used = sorted(operands_used(expr))
    full: dict[int, np.ndarray] = {}
    for index in used:
        value = values[index]
        if value is None:
            return None
        full[index] = np.broadcast_to(value, sizes)
    result = np.empty(sizes, dtype=object)
    for position in np.ndindex(*sizes):
        element = _evaluate(expr, {index: array.item(position) for index, array in full.items()})
        if element is None:
            return None
        result[position] = element
    return result


def _evaluate(expr: Expr, operands: dict[int, Dim]) -> Dim | None:
    match expr:
        case Operand():
            return fitting(operands[expr.index], expr.dtype)
        case Literal():
            return _literal(expr)
        case Cast():
            value = _evaluate(expr.argument, operands)
            if value is None:
                return None
            return _unequal(value, 0) if expr.dtype is bool_ else fitting(value, expr.dtype)
        case Apply():
            functions = _OVER_FLOATS if expr.arguments[0].dtype.is_float else _FUNCTIONS
            if expr.function not in functions:
                return None
            args = [_evaluate(arg, operands) for arg in expr.arguments]
            if expr.function == "select" and args[0] is not None:
                return args[1] if args[0] else args[2]
            present = [arg for arg in args if arg is not None]
            if len(present) == len(args):
                return fitting(functions[expr.function](*present), expr.dtype)
    return None


def _literal(expr: Literal) -> Dim | None:
    if expr.dtype is bool_:
        return bool(expr.value)
    is_whole = math.isfinite(expr.value) and expr.value == int(expr.value)
    return int(expr.value) if is_whole and (expr.value or math.copysign(1, expr.value) > 0) else None


def fitting(value: Dim | None, dtype: DType) -> Dim | None:
    """The value if it cannot overflow the type, as bool or int."""
    if value is None:
        return None
    low, high = bounds(value)
    if low < (-dtype.whole if dtype.is_float else dtype.low) or high > dtype.whole:
        return None
    if isinstance(value, int):
        return bool(value) if dtype is bool_ else int(value)
    return value


def _difference_test(
    always: Callable[[int, int], bool], never: Callable[[int, int], bool]
) -> Callable[[Dim, Dim], Dim | None]:
    """A comparison decided by the bounds of a - b."""

    def test(a: Dim, b: Dim) -> Dim | None:
        low, high = bounds(a - b)
        if always(low, high):
            return True
        return False if never(low, high) else None

    return test


_equal = _difference_test(lambda low, high: low == high == 0, lambda low, high: low > 0 or high < 0)
_unequal = _difference_test(lambda low, high: low > 0 or high < 0, lambda low, high: low == high == 0)


def _div(a: Dim, b: Dim) -> Dim | None:
    """Rounded toward zero: a floor where both are positive."""
    if bounds(a)[0] >= 0 and bounds(b)[0] > 0:
        return a // b
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return None


def _mod(a: Dim, b: Dim) -> Dim | None:
    return a % b if bounds(b)[0] > 0 or (isinstance(a, int) and isinstance(b, int) and b != 0) else None


def _fmod(a: Dim, b: Dim) -> Dim | None:
    quotient = _div(a, b)
    return None if quotient is None else a - quotient * b


def _abs(a: Dim) -> Dim | None:
    low, high = bounds(a)
    return a if low >= 0 else -a if high <= 0 else None


def _sign(a: Dim) -> Dim | None:
    low, high = bounds(a)
    if low == high:
        return (low > 0) - (low < 0)
    return 1 if low > 0 else -1 if high < 0 else None


def _integers(function: Callable[[int, int], int]) -> Callable[[Dim, Dim], Dim | None]:
    return lambda a, b: function(a, b) if isinstance(a, int) and isinstance(b, int) else None


_FUNCTIONS: dict[str, Callable[..., Dim | None]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _div,
    "mod": _mod,
    "fmod": _fmod,
    "neg": lambda a: -a,
    "abs": _abs,
    "sign": _sign,
    "min": minimum,
    "max": maximum,
    "pow": _integers(lambda a, b: a**b if 0 <= b <= 64 else 1 << 80),  # what is too large is dropped as overflow
    "equal": _equal,
    "less": _difference_test(lambda low, high: high < 0, lambda low, high: low >= 0),
    "less_equal": _difference_test(lambda low, high: high <= 0, lambda low, high: low > 0),
    "greater": _difference_test(lambda low, high: low > 0, lambda low, high: high <= 0),
    "greater_equal": _difference_test(lambda low, high: low >= 0, lambda low, high: high < 0),
    "and": _integers(lambda a, b: bool(a and b)),
    "or": _integers(lambda a, b: bool(a or b)),
    "xor": _integers(lambda a, b: bool(a) != bool(b)),
    "not": lambda a: not a if isinstance(a, int) else None,
    "select": lambda condition, a, b: None,  # decided by _evaluate, which needs only the branch that is taken
}


def _float_mul(a: Dim, b: Dim) -> Dim | None:
    """Zero times what is negative is a negative zero."""
    return a * b if min(*bounds(a), *bounds(b)) >= 0 else None


def _float_div(a: Dim, b: Dim) -> Dim | None:
    """The quotient of whole numbers where it is one for every size."""
    if bounds(a)[0] < 0 or not isinstance(b, int) or b <= 0:
        return None
    return a // b if a % b == 0 else None


def _itself(a: Dim) -> Dim:
    return a


_OVER_FLOATS: dict[str, Callable[..., Dim | None]] = {
    name: _FUNCTIONS[name]
    for name in (
        "add", "sub", "abs", "min", "max", "equal", "less", "less_equal", "greater", "greater_equal",
    )
} | {
    "mul": _float_mul, "div": _float_div, "floor": _itself, "ceil": _itself, "round_even": _itself,
}  # fmt: skip
