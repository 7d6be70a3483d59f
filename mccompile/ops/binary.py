"""Operators of two operands that broadcast: arithmetic, bits, logic, comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from ..base.dtypes import f64, i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast
from .api import Invalid
from .rules.elementwise import Binary, BinaryFunction, check_count, check_dtypes, scalar_function, wide

Add = scalar_function(BinaryFunction, "Add", (1, 6, 7, 13, 14), "add")
Sub = scalar_function(BinaryFunction, "Sub", (1, 6, 7, 13, 14), "sub")
Mul = scalar_function(BinaryFunction, "Mul", (1, 6, 7, 13, 14), "mul")
Div = scalar_function(BinaryFunction, "Div", (1, 6, 7, 13, 14), "div")
BitwiseAnd = scalar_function(BinaryFunction, "BitwiseAnd", (18,), "bit_and", takes="integers")
BitwiseOr = scalar_function(BinaryFunction, "BitwiseOr", (18,), "bit_or", takes="integers")
BitwiseXor = scalar_function(BinaryFunction, "BitwiseXor", (18,), "bit_xor", takes="integers")
And = scalar_function(BinaryFunction, "And", (1, 7), "and", takes="bools")
Or = scalar_function(BinaryFunction, "Or", (1, 7), "or", takes="bools")
Xor = scalar_function(BinaryFunction, "Xor", (1, 7), "xor", takes="bools")
Less = scalar_function(BinaryFunction, "Less", (1, 7, 9, 13), "less")
Greater = scalar_function(BinaryFunction, "Greater", (1, 7, 9, 13), "greater")
LessOrEqual = scalar_function(BinaryFunction, "LessOrEqual", (12, 16), "less_equal")
GreaterOrEqual = scalar_function(BinaryFunction, "GreaterOrEqual", (12, 16), "greater_equal")
Equal = scalar_function(BinaryFunction, "Equal", (1, 7, 11, 13, 19), "equal", takes="elements of any type")


@dataclass(frozen=True)
class Pow(Binary):
    """The result has the type of the base."""

    versions = (1, 7, 12, 13, 15)
    takes = "numbers"

    def check(self, types: Sequence[TensorType]) -> None:
        check_count(self.name, types, 2)
        check_dtypes(self.name, self.takes, types, same=False)

    def expr(self, a: Expr, b: Expr) -> Expr:
        if a.dtype.is_float or a.dtype is b.dtype:
            common = wide(a.dtype)
            return cast(apply("pow", cast(a, common), cast(b, common)), a.dtype)
        common = f64 if b.dtype.is_float else i64
        return cast(apply("pow", cast(a, common), cast(b, common)), a.dtype)


@dataclass(frozen=True)
class Mod(Binary):
    versions = (10, 13, 28)
    takes = "numbers"
    fmod: int = 0

    def expr(self, a: Expr, b: Expr) -> Expr:
        return apply("fmod" if self.fmod else "mod", a, b)


@dataclass(frozen=True)
class BitShift(Binary):
    versions = (11, 28)
    takes = "integers"
    direction: str

    def expr(self, a: Expr, b: Expr) -> Expr:
        functions = {"LEFT": "shift_left", "RIGHT": "shift_right"}
        if self.direction not in functions:
            raise Invalid(f"direction {self.direction!r} is not LEFT or RIGHT")
        return apply(functions[self.direction], a, b)
