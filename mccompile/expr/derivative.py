"""The derivative of an expression by one of its operands, as another expression.

Invariant: where the function is differentiable and its derivative is finite, so is the value of what is given here, for
arguments of any size: chosen branches stay chosen (no product of 0 and infinity). Where two branches meet, one of them
is taken, and the derivatives by all operands of a minimum or maximum add up to 1. What steps (signs, rounding,
comparisons, positions) has the derivative 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..base.dtypes import DType
from .ir import Apply, Cast, Expr, Literal, Operand, apply, cast, literal


class NoDerivative(ValueError):
    """A function has none; the text is its name."""


def derivative(expr: Expr, by: int) -> Expr | None:
    """By operand `by`; None where it is 0 everywhere."""
    match expr:
        case Operand():
            return literal(1, expr.dtype) if expr.index == by else None
        case Cast():
            inner = derivative(expr.argument, by) if expr.argument.dtype.is_float and expr.dtype.is_float else None
            return None if inner is None else converted(inner, expr.dtype)
        case Apply() if expr.dtype.is_float:
            return _of_function(expr, by)
    return None


def slope_of_result(function: str, y: Expr) -> Expr | None:
    """The slope of a function of one argument, where it follows from its result y."""
    rule = _OF_RESULT.get(function)
    return None if rule is None else rule(y)


def converted(slope: Expr, dtype: DType) -> Expr:
    """Between floats."""
    return literal(slope.value, dtype) if isinstance(slope, Literal) else cast(slope, dtype)


def _of_function(expr: Apply, by: int) -> Expr | None:
    if expr.function in _STEPS:
        return None
    if expr.function == "select":
        condition, *branches = expr.args
        return _choice(condition, *(derivative(branch, by) for branch in branches))
    if expr.function in ("min", "max"):
        a, b = expr.args
        first = apply("greater" if expr.function == "max" else "less", a, b)
        return _choice(first, derivative(a, by), derivative(b, by))
    inner = [derivative(arg, by) for arg in expr.args]
    total: Expr | None = None
    for position, change in enumerate(inner):
        if change is not None:
            total = _sum(total, times(_slope(expr, position), change))
    return total


def _slope(expr: Apply, position: int) -> Expr:
    """By an argument of the function."""
    rules = _SLOPES.get(expr.function)
    if rules is None:
        raise NoDerivative(expr.function)
    return rules[position](expr, *expr.args)


def _choice(condition: Expr, a: Expr | None, b: Expr | None) -> Expr | None:
    known = a if a is not None else b
    if known is None:
        return None
    zero = literal(0, known.dtype)
    return apply("select", condition, zero if a is None else a, zero if b is None else b)


def _sum(a: Expr | None, b: Expr) -> Expr:
    return b if a is None else apply("add", a, b)


def times(a: Expr, b: Expr) -> Expr:
    """Their product; 1 and -1 multiply nothing, and a branch of 0 stays 0 whatever it is multiplied by."""
    one, zero = literal(1, a.dtype), literal(0, a.dtype)
    for chosen, factor in ((a, b), (b, a)):
        if isinstance(chosen, Apply) and chosen.function == "select" and zero in chosen.args[1:]:
            condition, *branches = chosen.args
            return apply("select", condition, *(zero if each == zero else times(each, factor) for each in branches))
    if a == one or b == one:
        return b if a == one else a
    if literal(-1, a.dtype) in (a, b):
        return apply("neg", b if a == literal(-1, a.dtype) else a)
    return apply("mul", a, b)


def _n(value: float, like: Expr) -> Expr:
    return literal(value, like.dtype)


def _one_minus(x: Expr) -> Expr:
    return apply("sub", _n(1, x), x)


def _square(x: Expr) -> Expr:
    return apply("mul", x, x)


def _inverse(x: Expr) -> Expr:
    return apply("div", _n(1, x), x)


def _power_by_base(y: Expr, a: Expr, b: Expr) -> Expr:
    """b * a^(b-1), which is 0 for b = 0 whatever a is."""
    slope = apply("mul", b, apply("pow", a, apply("sub", b, _n(1, b))))
    return apply("select", apply("equal", b, _n(0, b)), _n(0, b), slope)


def _power_by_exponent(y: Expr, a: Expr, b: Expr) -> Expr:
    """a^b * log(a), which is 0 for a = 0 and b >= 0."""
    at_zero = apply("and", apply("equal", a, _n(0, a)), apply("greater_equal", b, _n(0, b)))
    return apply("select", at_zero, _n(0, a), apply("mul", y, apply("log", a)))


_Slope = Callable[..., Expr]  # of the expression and its arguments
_OF_RESULT: dict[str, Callable[[Expr], Expr]] = {
    "sqrt": lambda y: apply("div", _n(0.5, y), y),
    "exp": lambda y: y,
    "tanh": lambda y: _one_minus(_square(y)),
}
_STEPS = frozenset({"sign", "floor", "ceil", "trunc", "round_even"})
_SLOPES: dict[str, tuple[_Slope, ...]] = {
    "add": (lambda y, a, b: _n(1, a), lambda y, a, b: _n(1, a)),
    "sub": (lambda y, a, b: _n(1, a), lambda y, a, b: _n(-1, a)),
    "mul": (lambda y, a, b: b, lambda y, a, b: a),
    "div": (lambda y, a, b: _inverse(b), lambda y, a, b: apply("neg", apply("div", y, b))),
    "pow": (_power_by_base, _power_by_exponent),
    "fmod": (lambda y, a, b: _n(1, a), lambda y, a, b: apply("neg", apply("trunc", apply("div", a, b)))),
    "mod": (lambda y, a, b: _n(1, a), lambda y, a, b: apply("neg", apply("floor", apply("div", a, b)))),
    "neg": (lambda y, x: _n(-1, x),),
    "abs": (lambda y, x: apply("sign", x),),
    "sqrt": (lambda y, x: _OF_RESULT["sqrt"](y),),
    "exp": (lambda y, x: y,),
    "log": (lambda y, x: _inverse(x),),
    "log1p": (lambda y, x: _inverse(apply("add", _n(1, x), x)),),
    "expm1": (lambda y, x: apply("exp", x),),
    "erf": (lambda y, x: apply("mul", _n(2 / math.sqrt(math.pi), x), apply("exp", apply("neg", _square(x)))),),
    "sin": (lambda y, x: apply("cos", x),),
    "cos": (lambda y, x: apply("neg", apply("sin", x)),),
    "tan": (lambda y, x: apply("add", _n(1, x), _square(y)),),
    "asin": (lambda y, x: _inverse(apply("sqrt", _one_minus(_square(x)))),),
    "acos": (lambda y, x: apply("neg", _inverse(apply("sqrt", _one_minus(_square(x))))),),
    "atan": (lambda y, x: _inverse(apply("add", _n(1, x), _square(x))),),
    "sinh": (lambda y, x: apply("cosh", x),),
    "cosh": (lambda y, x: apply("sinh", x),),
    "tanh": (lambda y, x: _OF_RESULT["tanh"](y),),
    "asinh": (lambda y, x: _inverse(apply("sqrt", apply("add", _square(x), _n(1, x)))),),
    "acosh": (lambda y, x: _inverse(apply("sqrt", apply("sub", _square(x), _n(1, x)))),),
    "atanh": (lambda y, x: _inverse(_one_minus(_square(x))),),
}
