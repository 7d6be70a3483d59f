"""Operators of one operand that are one scalar function, and tests for NaN and infinity."""

from __future__ import annotations

from dataclasses import dataclass

from ..base.dtypes import bool_
from ..expr.ir import Expr, apply, literal
from .rules.elementwise import Unary, UnaryFunction


@dataclass(frozen=True)
class Abs(UnaryFunction):
    name = "Abs"
    versions = (6, 13)
    function = "abs"
    takes = "numbers"


@dataclass(frozen=True)
class Neg(UnaryFunction):
    name = "Neg"
    versions = (6, 13)
    function = "neg"
    takes = "numbers"


@dataclass(frozen=True)
class Sign(UnaryFunction):
    name = "Sign"
    versions = (9, 13)
    function = "sign"
    takes = "numbers"


@dataclass(frozen=True)
class Sqrt(UnaryFunction):
    name = "Sqrt"
    versions = (6, 13)
    function = "sqrt"


@dataclass(frozen=True)
class Exp(UnaryFunction):
    name = "Exp"
    versions = (6, 13)
    function = "exp"


@dataclass(frozen=True)
class Log(UnaryFunction):
    name = "Log"
    versions = (6, 13)
    function = "log"


@dataclass(frozen=True)
class Sin(UnaryFunction):
    name = "Sin"
    versions = (7, 22)
    function = "sin"


@dataclass(frozen=True)
class Cos(UnaryFunction):
    name = "Cos"
    versions = (7, 22)
    function = "cos"


@dataclass(frozen=True)
class Tan(UnaryFunction):
    name = "Tan"
    versions = (7, 22)
    function = "tan"


@dataclass(frozen=True)
class Asin(UnaryFunction):
    name = "Asin"
    versions = (7, 22)
    function = "asin"


@dataclass(frozen=True)
class Acos(UnaryFunction):
    name = "Acos"
    versions = (7, 22)
    function = "acos"


@dataclass(frozen=True)
class Atan(UnaryFunction):
    name = "Atan"
    versions = (7, 22)
    function = "atan"


@dataclass(frozen=True)
class Sinh(UnaryFunction):
    name = "Sinh"
    versions = (9, 22)
    function = "sinh"


@dataclass(frozen=True)
class Cosh(UnaryFunction):
    name = "Cosh"
    versions = (9, 22)
    function = "cosh"


@dataclass(frozen=True)
class Tanh(UnaryFunction):
    name = "Tanh"
    versions = (6, 13)
    function = "tanh"


@dataclass(frozen=True)
class Asinh(UnaryFunction):
    name = "Asinh"
    versions = (9, 22)
    function = "asinh"


@dataclass(frozen=True)
class Acosh(UnaryFunction):
    name = "Acosh"
    versions = (9, 22)
    function = "acosh"


@dataclass(frozen=True)
class Atanh(UnaryFunction):
    name = "Atanh"
    versions = (9, 22)
    function = "atanh"


@dataclass(frozen=True)
class Erf(UnaryFunction):
    name = "Erf"
    versions = (9, 13)
    function = "erf"


@dataclass(frozen=True)
class Floor(UnaryFunction):
    name = "Floor"
    versions = (6, 13)
    function = "floor"


@dataclass(frozen=True)
class Ceil(UnaryFunction):
    name = "Ceil"
    versions = (6, 13)
    function = "ceil"


@dataclass(frozen=True)
class Round(UnaryFunction):
    name = "Round"
    versions = (11, 22)
    function = "round_even"


@dataclass(frozen=True)
class Not(UnaryFunction):
    name = "Not"
    versions = (1,)
    function = "not"
    takes = "bools"


@dataclass(frozen=True)
class BitwiseNot(UnaryFunction):
    name = "BitwiseNot"
    versions = (18,)
    function = "bit_not"
    takes = "integers"


@dataclass(frozen=True)
class Reciprocal(Unary):
    name = "Reciprocal"
    versions = (6, 13)

    def expr(self, x: Expr) -> Expr:
        return apply("div", literal(1, x.dtype), x)


@dataclass(frozen=True)
class IsNaN(Unary):
    name = "IsNaN"
    versions = (9, 13, 20)

    def expr(self, x: Expr) -> Expr:
        return apply("is_nan", x)


@dataclass(frozen=True)
class IsInf(Unary):
    name = "IsInf"
    versions = (10, 20)
    detect_negative: int = 1
    detect_positive: int = 1

    def expr(self, x: Expr) -> Expr:
        positive, negative = apply("is_positive_inf", x), apply("is_negative_inf", x)
        if self.detect_positive and self.detect_negative:
            return apply("or", positive, negative)
        if self.detect_positive:
            return positive
        return negative if self.detect_negative else literal(False, bool_)
