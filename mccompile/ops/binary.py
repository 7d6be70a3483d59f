"""Operators of two operands that broadcast: arithmetic, bits, logic, comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..base.dtypes import f64, i64
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast
from .api import Invalid
from .rules.elementwise import Binary, BinaryFunction, check_count, check_dtypes, wide


@dataclass(frozen=True)
class Add(BinaryFunction):
    name = "Add"
    versions = (1, 6, 7, 13, 14)
    function = "add"


@dataclass(frozen=True)
class Sub(BinaryFunction):
    name = "Sub"
    versions = (1, 6, 7, 13, 14)
    function = "sub"


@dataclass(frozen=True)
class Mul(BinaryFunction):
    name = "Mul"
    versions = (1, 6, 7, 13, 14)
    function = "mul"


@dataclass(frozen=True)
class Div(BinaryFunction):
    name = "Div"
    versions = (1, 6, 7, 13, 14)
    function = "div"


@dataclass(frozen=True)
class BitwiseAnd(BinaryFunction):
    name = "BitwiseAnd"
    versions = (18,)
    function = "bit_and"
    takes = "integers"


@dataclass(frozen=True)
class BitwiseOr(BinaryFunction):
    name = "BitwiseOr"
    versions = (18,)
    function = "bit_or"
    takes = "integers"


@dataclass(frozen=True)
class BitwiseXor(BinaryFunction):
    name = "BitwiseXor"
    versions = (18,)
    function = "bit_xor"
    takes = "integers"


@dataclass(frozen=True)
class And(BinaryFunction):
    name = "And"
    versions = (1, 7)
    function = "and"
    takes = "bools"


@dataclass(frozen=True)
class Or(BinaryFunction):
    name = "Or"
    versions = (1, 7)
    function = "or"
    takes = "bools"


@dataclass(frozen=True)
class Xor(BinaryFunction):
    name = "Xor"
    versions = (1, 7)
    function = "xor"
    takes = "bools"


@dataclass(frozen=True)
class Less(BinaryFunction):
    name = "Less"
    versions = (1, 7, 9, 13)
    function = "less"


@dataclass(frozen=True)
class Greater(BinaryFunction):
    name = "Greater"
    versions = (1, 7, 9, 13)
    function = "greater"


@dataclass(frozen=True)
class LessOrEqual(BinaryFunction):
    name = "LessOrEqual"
    versions = (12, 16)
    function = "less_equal"


@dataclass(frozen=True)
class GreaterOrEqual(BinaryFunction):
    name = "GreaterOrEqual"
    versions = (12, 16)
    function = "greater_equal"


@dataclass(frozen=True)
class Equal(BinaryFunction):
    name = "Equal"
    versions = (1, 7, 11, 13, 19)
    function = "equal"
    takes = "elements of any type"


@dataclass(frozen=True)
class Pow(Binary):
    """The result has the type of the base."""

    name = "Pow"
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
    name = "Mod"
    versions = (10, 13, 28)
    takes = "numbers"
    fmod: int = 0

    def expr(self, a: Expr, b: Expr) -> Expr:
        return apply("fmod" if self.fmod else "mod", a, b)


@dataclass(frozen=True)
class BitShift(Binary):
    name = "BitShift"
    versions = (11, 28)
    takes = "integers"
    direction: str

    def expr(self, a: Expr, b: Expr) -> Expr:
        functions = {"LEFT": "shift_left", "RIGHT": "shift_right"}
        if self.direction not in functions:
            raise Invalid(f"direction {self.direction!r} is not LEFT or RIGHT")
        return apply(functions[self.direction], a, b)
