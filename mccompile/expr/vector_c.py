"""Prints an expression as C over vectors of floats (mcc_vec.h, mcc_vecmath.h, mcc_vecmath_wide.h; mcc_vec_half.h;
mcc_vec_doubles.h).

Only what vectors can do: floats, and truth values that comparisons make on the way; integers become floats, and the
value may become a short integer or a truth value. Vectors of 32 bits also compute narrow floats, which are rounded
after every operation; vectors of 16 bits compute those only, and vectors of doubles doubles. `refusal` says why
something else cannot be printed, so that the portable kernel takes it. Invariant: every lane gets what scalar C would
give, but functions of these headers may differ from libm's in the last places, and vectors of 16 bits compute
everything in 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from ..base.dtypes import SHORT, DType, bf16, bool_, f16, f32, f64, i32, i64, u32, u64
from ..base.marked import called, plain
from .code import Code
from .ir import (
    Apply,
    Cast,
    Expr,
    Index,
    Literal,
    Operand,
    apply,
    cast,
    literal,
    operand,
    operands_used,
    rebuild,
    substitute,
    uses,
    walk,
)
from .scalar_c import literal_c

_ARITHMETIC = frozenset({"add", "sub", "mul", "neg"})
_COMPARISONS = frozenset({"equal", "less", "less_equal", "greater", "greater_equal"})
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_PLAIN = frozenset({"abs", "sqrt", "floor", "ceil", "trunc", "round_even", "select"})
# of mcc_vecmath.h, and of mcc_vecmath_wide.h
_MATH = frozenset({"exp", "expm1", "log", "log1p", "tanh", "erf", "asin", "acos", "atan"})
_WIDE = frozenset({"sin", "cos", "tan", "sinh", "cosh", "asinh", "acosh", "atanh", "pow", "mod", "fmod"})
_BOUNDS = {"max": "at_least", "min": "at_most"}
_OTHERS = frozenset({"div", "not", "is_nan"})
_OF_MASKS = frozenset({*_LOGIC, "not", "equal"})  # what masks may be given to
_EXACT = frozenset({*_BOUNDS, *_PLAIN, "neg"}) - {"sqrt"}  # give numbers that narrow floats have
NARROW = (f16, bf16)  # what may be among floats of 32 bits
ROUNDED = (i32, u32, i64, u64)  # integers that are rounded where they become floats
_KNOWN = frozenset({*_LOGIC, *_BOUNDS}) | _ARITHMETIC | _COMPARISONS | _PLAIN | _MATH | _WIDE | _OTHERS


def refusal(expr: Expr, dtype: DType = f32, narrow: Sequence[DType] = ()) -> str:
    """Why vectors of such floats cannot compute the expression, with floats of these narrow types in it, or nothing.
    Where truth values are among the types, operands may be such; they are given as masks of 32 bits. Where integers
    are, they are given as floats, and the result may be stored as a short one, or as a truth value."""
    if dtype is f32 and not set(narrow).isdisjoint(SHORT):
        expr = _of_floats(expr)
    expr = _in_one_type(_without_tests(expr), dtype)
    floats = (dtype, *(other for other in narrow if other.is_float)) if dtype is f32 else (dtype,)
    for node in walk(expr):
        match node:
            case Operand() if node.dtype is bool_ and bool_ in narrow and dtype is not f16:
                continue
            case Operand() if node.dtype in (*SHORT, *ROUNDED) and node.dtype in narrow:
                continue  # a cast is what reads it, else that is refused
            case Operand() if node.dtype not in floats:
                return f"vectors of {node.dtype} are not supported"
            case Index():
                return "it needs positions, which are not computed in vectors"
            case Cast() if node.dtype in floats and node.argument.dtype in floats:
                continue
            case Cast(argument=Operand(dtype=of)) if node.dtype in floats and of in narrow and of is not bool_:
                continue
            case Apply() if node.function not in _KNOWN:
                return f"{node.function} has no vector form"
            case Apply() if node.function not in _OF_MASKS and node.arguments[-1].dtype is bool_:
                return f"{node.function} of truth values has no vector form"
        if node.dtype not in (*floats, bool_) or not isinstance(node, Operand | Literal | Apply):
            return f"{node.dtype} is not computed in vectors"
    return "" if expr.dtype in floats else f"vectors of {expr.dtype} are not stored"


def refusals(expressions: Sequence[Expr], dtype: DType = f32, narrow: Sequence[DType] = ()) -> str:
    """The first reason why vectors cannot compute all of these, or nothing."""
    return next(filter(None, (refusal(expr, dtype, narrow) for expr in expressions)), "")


def _without_tests(expr: Expr) -> Expr:
    """Signs and tests for infinity as comparisons, casts from and to truth values as choices and comparisons."""

    def compared(node: Expr) -> Expr | None:
        match node:
            case Cast(argument=truth) if truth.dtype is bool_ and node.dtype.is_float:
                return _as_number(_without_tests(truth), node.dtype)
            case Cast(argument=x, dtype=dtype) if dtype is bool_ and x.dtype.is_float:
                return apply("not", apply("equal", _without_tests(x), literal(0, x.dtype)))
            case Apply(function="is_positive_inf" | "is_negative_inf", arguments=(x,)):
                end = literal(math.inf if node.function == "is_positive_inf" else -math.inf, x.dtype)
                return apply("equal", _without_tests(x), end)
            case Apply(function="sign", arguments=(x,)) if x.dtype.is_float:
                x, (below, zero, above) = _without_tests(x), (literal(n, x.dtype) for n in (-1, 0, 1))
                sign = apply("select", apply("greater", x, zero), above, zero)
                sign = apply("select", apply("less", x, zero), below, sign)
                return apply("select", apply("is_nan", x), x, sign)
        return None

    return rebuild(expr, compared)


def _as_number(truth: Expr, dtype: DType) -> Expr:
    return apply("select", truth, literal(1, dtype), literal(0, dtype))


def _of_floats(expr: Expr) -> Expr:
    """The float that is stored as a short integer or a truth value, or the expression; sums of short integers are exact
    as floats."""
    if expr.dtype is bool_:
        return _as_number(expr, f32)
    if _fits(expr):
        assert isinstance(expr, Cast)
        expr = expr.argument

    def added(node: Expr) -> Expr | None:
        match node:
            case Cast(argument=Apply(function="add" | "sub" as name, arguments=arguments)) if node.dtype is f32:
                whole = [each.argument for each in arguments if isinstance(each, Cast) and each.dtype is i32]
                if len(whole) == 2 and all(each.dtype in SHORT for each in whole):
                    return apply(name, *(rebuild(cast(each, f32), added) for each in whole))
            case Cast(argument=Cast(argument=x) as short) if node.dtype is f32 and _fits(short):
                return _stored(rebuild(x, added))
        return None

    return rebuild(expr, added)


def _fits(expr: Expr) -> bool:
    """Is it a float that becomes a short integer, within its bounds?"""
    if not isinstance(expr, Cast) or expr.dtype not in SHORT or expr.argument.dtype is not f32:
        return False
    low, high = _reach(expr.argument)
    return expr.dtype.low <= low and high <= expr.dtype.high


def _stored(x: Expr) -> Expr:
    """The float that a short integer has of a float within its bounds."""
    whole = x if _is_whole(x) else apply("trunc", x)
    whole = whole if _has_no_minus_zero(x) else apply("add", whole, literal(0, f32))
    return apply("select", apply("equal", whole, whole), whole, literal(0, f32))


def _is_whole(node: Expr) -> bool:
    match node:
        case Literal():
            return float(node.value).is_integer()
        case Cast():
            return not node.argument.dtype.is_float
        case Apply(function="round_even" | "floor" | "ceil" | "trunc"):
            return True
        case Apply(function="add" | "sub" | "max" | "min"):
            return all(map(_is_whole, node.arguments))
    return False


def _has_no_minus_zero(node: Expr) -> bool:
    match node:
        case Literal():
            return math.copysign(1, node.value) > 0 or node.value != 0
        case Cast():
            return not node.argument.dtype.is_float
        case Apply(function="max" | "min"):
            return all(map(_has_no_minus_zero, node.arguments))
        case Apply(function="add"):
            return any(map(_has_no_minus_zero, node.arguments))
    return False


def _reach(node: Expr) -> tuple[float, float]:
    """The lowest and the highest number that it may be, as far as bounds tell."""
    match node:
        case Literal():
            return float(node.value), float(node.value)
        case Apply(function="max" | "min"):
            choose = max if node.function == "max" else min
            (a, b), (c, d) = map(_reach, node.arguments)
            return choose(a, c), choose(b, d)
    return -math.inf, math.inf


def _in_one_type(expr: Expr, dtype: DType) -> Expr:
    """With vectors of 16 bits, sums come in 16 bits, and what would be computed in 32 bits on the way is so as well."""
    if dtype is not f16:
        return expr
    match expr:
        case Cast() if {expr.dtype, expr.argument.dtype} == {f32, dtype}:
            return _in_one_type(expr.argument, dtype)
        case Operand() if expr == operand(0, f32):
            return operand(0, dtype)
        case Literal() if expr.dtype is f32:
            with np.errstate(over="ignore"):
                return literal(float(np.float16(expr.value)), dtype)
        case Apply():
            return apply(expr.function, *(_in_one_type(arg, dtype) for arg in expr.arguments))
    return expr


def mask_of(dtype: DType) -> str:
    """In the names of types and functions: masks of vectors of such floats. `i64` are sums of products of integers."""
    return "b64" if dtype is f64 else f"i{dtype.bits}"


def half_c(value: float) -> str:
    """A 16-bit float as the bits that it has in memory."""
    return f"0x{int(np.float16(value).view(np.uint16)):04X}u /* {value:g} */"


def uses_math(expr: Expr) -> bool:
    """Does it call functions of mcc_vecmath.h and the like?"""
    return bool(math_headers([expr]))


def math_headers(expressions: Iterable[Expr], dtype: DType = f32) -> frozenset[str]:
    """The headers of the functions that vectors of such floats call."""
    called = {node.function for expr in expressions for node in walk(expr) if isinstance(node, Apply)}
    if dtype is f64:
        return frozenset({"mcc_vecmath_doubles.h"} if called & (_MATH | _WIDE) else ())
    half = "_half" if dtype is f16 else ""
    found = {f"mcc_vecmath{half}.h": _MATH, f"mcc_vecmath_wide{half}.h": _WIDE}
    return frozenset(header for header, functions in found.items() if functions & called)


def stages(expr: Expr) -> list[Expr]:
    """The expression in turns, of which each but the first has the result of the one before as its only operand: cut
    where a function of these headers waits for another one. A core sees only so many instructions ahead, which are
    those of more elements where each takes fewer."""
    number = 1 + max(operands_used(expr), default=0)
    for node in walk(expr):
        if not isinstance(node, Apply) or node.function not in _MATH | _WIDE or len(node.arguments) != 1:
            continue
        (before,) = node.arguments
        after = _cut(expr, before, operand(number, f32))
        if before.dtype is f32 and uses_math(before) and operands_used(after) == {number}:
            return [*stages(before), *stages(substitute(after, {number: operand(0, f32)}))]
    return [expr]


def _cut(expr: Expr, part: Expr, instead: Expr) -> Expr:
    return rebuild(expr, lambda node: instead if node == part else None)


def to_vector_statements(
    expr: Expr, operands: Sequence[str], lanes: int, local: str = "t", dtype: DType = f32
) -> tuple[list[str], str]:
    """C statements that define locals for whatever is used more than once, and the C of the value itself, which is
    rounded to a narrow type when it is stored. Operands are given as C of vectors."""
    expr = expr if dtype is f64 else _of_floats(expr)
    return _Printer(_in_one_type(_without_tests(expr), dtype), operands, lanes, local, dtype).run()


class _Printer:
    def __init__(self, expr: Expr, operands: Sequence[str], lanes: int, local: str, dtype: DType) -> None:
        self.expr, self.operands, self.local, self.dtype = expr, operands, local, dtype
        self.of, self.mask = f"{dtype}x{lanes}", f"{mask_of(dtype)}x{lanes}"
        self.uses = uses(expr)
        self.names: dict[Expr, str] = {}
        self.lines: list[str] = []

    def run(self) -> tuple[list[str], str]:
        return self.lines, self.code(self.expr).text

    def code(self, node: Expr) -> Code:
        if node in self.names:
            return Code(self.names[node])
        code = self.printed(node)
        if node is not self.expr and self.rounds(node):
            code = Code(f"mcc_round_{node.dtype}_{self.of}({code.text})")
        if self.uses[node] == 1 or isinstance(node, Literal) or plain(code.text).isidentifier():
            return code
        name = self.names[node] = f"{self.local}{len(self.names)}"
        kind = self.mask if node.dtype is bool_ else self.of
        self.lines.append(f"const mcc_{kind} {name} = {code.text};")
        return Code(name)

    def rounds(self, node: Expr) -> bool:
        """Has the vector of 32 bits to be rounded to what a narrow type has?"""
        if self.dtype is not f32 or node.dtype not in NARROW:
            return False
        match node:
            case Cast():
                return node.argument.dtype is not node.dtype
            case Apply():
                return node.function not in _EXACT
        return False

    def printed(self, node: Expr) -> Code:
        match node:
            case Cast():
                return self.code(node.argument)
            case Operand():
                return Code(self.operands[node.index])
            case Literal() if node.dtype is bool_:
                return Code(f"mcc_set_{self.mask}({-1 if node.value else 0})")
            case Literal():
                return Code(f"mcc_set_{self.of}({self.number(node.value)})")
            case Apply():
                return self.applied(node)
        raise TypeError(f"not for vectors: {node}")

    def number(self, value: int | float) -> str:
        return half_c(value) if self.dtype is f16 else literal_c(value, self.dtype)

    def applied(self, node: Apply) -> Code:
        name = node.function
        if name in _BOUNDS:
            return Code(self.bounded(node))
        args = [self.code(arg) for arg in node.arguments]
        one, other = args[0].operand, args[-1].operand
        if name == "equal" and node.arguments[0].dtype is bool_:
            return Code(f"~({one} ^ {other})")
        if name in _LOGIC:
            return Code(f"{one} {_LOGIC[name]} {other}", loose=True)
        if name == "not":
            return Code(f"~{one}")
        whole = [arg.text for arg in args]
        if name == "is_nan":
            return Code(f"~mcc_equal_{self.of}({whole[0]}, {whole[0]})")
        return Code(called(f"mcc_{name}_{self.of}", whole))

    def bounded(self, node: Apply) -> str:
        """Maxima and minima; one instruction where one side is known to be a number."""
        a, b = node.arguments
        x, y = self.code(a).text, self.code(b).text
        for one, other, bound in ((x, y, b), (y, x, a)):
            if isinstance(bound, Literal) and bound.value == bound.value:
                return called(f"mcc_{_BOUNDS[node.function]}_{self.of}", (one, other))
        return called(f"mcc_{node.function}_{self.of}", (x, y))
