"""Powers whose exponent is known, as products, quotients and roots.

Invariant: what comes out is within 2 ulp of pow(x, exponent), and equals it for zeros, infinities and NaN. So there is
no form where a factor leaves the range of floats before the power does (x**-2 is a product of quotients, x**-3 has
none).
"""

from __future__ import annotations

import math

from .ir import Expr, apply, literal


def known_power(x: Expr, exponent: float) -> Expr | None:
    """x**exponent without pow, or None where that takes one."""
    if exponent == 1:
        return x
    if exponent in (2, 3, 4):
        return _product(x, int(exponent))
    if not x.dtype.is_float:
        return None
    one = literal(1, x.dtype)
    match exponent:
        case 0.5:
            return _root(x)
        case 1.5:
            return apply("mul", _finite_below(x), apply("sqrt", _finite_below(x)))
        case -0.5:
            return apply("div", one, _root(x))
        case -1:
            return apply("div", one, x)
        case -2:
            return _product(apply("div", one, x), 2)
    return None


def power(x: Expr, exponent: float) -> Expr:
    """x**exponent in the shortest form."""
    found = known_power(x, exponent)
    return apply("pow", x, literal(exponent, x.dtype)) if found is None else found


def near_power(x: Expr, exponent: float) -> Expr:
    """x**exponent of a positive and finite x, within 4 ulp."""
    if exponent != 0.75:
        return power(x, exponent)
    root = apply("sqrt", x)
    return apply("mul", root, apply("sqrt", root))


def _product(x: Expr, count: int) -> Expr:
    square = apply("mul", x, x)
    return {2: lambda: square, 3: lambda: apply("mul", square, x), 4: lambda: apply("mul", square, square)}[count]()


def _root(x: Expr) -> Expr:
    """pow(x, 0.5) is not a root at two places: it gives 0 for -0, and infinity for -infinity."""
    return apply("add", apply("sqrt", _finite_below(x)), literal(0, x.dtype))


def _finite_below(x: Expr) -> Expr:
    """x with infinity where it is -infinity."""
    below = apply("equal", x, literal(-math.inf, x.dtype))
    return apply("select", below, literal(math.inf, x.dtype), x)
