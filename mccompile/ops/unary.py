"""Operators of one operand that are one scalar function, and tests for NaN and infinity."""

from __future__ import annotations

from ..base.dtypes import bool_
from ..base.records import dataclass
from ..expr.ir import Expr, apply, literal
from .rules.elementwise import Unary, UnaryFunction, scalar_function

Abs = scalar_function(UnaryFunction, "Abs", (6, 13), "abs", takes="numbers")
Neg = scalar_function(UnaryFunction, "Neg", (6, 13), "neg", takes="numbers")
Sign = scalar_function(UnaryFunction, "Sign", (9, 13), "sign", takes="numbers")
Sqrt = scalar_function(UnaryFunction, "Sqrt", (6, 13), "sqrt")
Exp = scalar_function(UnaryFunction, "Exp", (6, 13), "exp")
Log = scalar_function(UnaryFunction, "Log", (6, 13), "log")
Sin = scalar_function(UnaryFunction, "Sin", (7, 22), "sin")
Cos = scalar_function(UnaryFunction, "Cos", (7, 22), "cos")
Tan = scalar_function(UnaryFunction, "Tan", (7, 22), "tan")
Asin = scalar_function(UnaryFunction, "Asin", (7, 22), "asin")
Acos = scalar_function(UnaryFunction, "Acos", (7, 22), "acos")
Atan = scalar_function(UnaryFunction, "Atan", (7, 22), "atan")
Sinh = scalar_function(UnaryFunction, "Sinh", (9, 22), "sinh")
Cosh = scalar_function(UnaryFunction, "Cosh", (9, 22), "cosh")
Tanh = scalar_function(UnaryFunction, "Tanh", (6, 13), "tanh")
Asinh = scalar_function(UnaryFunction, "Asinh", (9, 22), "asinh")
Acosh = scalar_function(UnaryFunction, "Acosh", (9, 22), "acosh")
Atanh = scalar_function(UnaryFunction, "Atanh", (9, 22), "atanh")
Erf = scalar_function(UnaryFunction, "Erf", (9, 13), "erf")
Floor = scalar_function(UnaryFunction, "Floor", (6, 13), "floor")
Ceil = scalar_function(UnaryFunction, "Ceil", (6, 13), "ceil")
Round = scalar_function(UnaryFunction, "Round", (11, 22), "round_even")
Not = scalar_function(UnaryFunction, "Not", (1,), "not", takes="bools")
BitwiseNot = scalar_function(UnaryFunction, "BitwiseNot", (18,), "bit_not", takes="integers")


@dataclass(frozen=True)
class Reciprocal(Unary):
    versions = (6, 13)

    def expr(self, x: Expr) -> Expr:
        return apply("div", literal(1, x.dtype), x)


@dataclass(frozen=True)
class IsNaN(Unary):
    versions = (9, 13, 20)

    def expr(self, x: Expr) -> Expr:
        return apply("is_nan", x)


@dataclass(frozen=True)
class IsInf(Unary):
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
