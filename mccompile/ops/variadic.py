"""Operators of any number of operands: Max, Min, Sum, Mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import ClassVar

from ..expr.ir import Expr, apply, cast, literal
from .elementwise import Elementwise, widened


class Variadic(Elementwise):
    function: ClassVar[str] = ""

    def element(self, args: Sequence[Expr]) -> Expr:
        return reduce(lambda a, b: apply(self.function, a, b), args)


@dataclass(frozen=True)
class Max(Variadic):
    name = "Max"
    versions = (6, 8, 12, 13)
    takes = "numbers"
    function = "max"


@dataclass(frozen=True)
class Min(Variadic):
    name = "Min"
    versions = (6, 8, 12, 13)
    takes = "numbers"
    function = "min"


@dataclass(frozen=True)
class Sum(Variadic):
    name = "Sum"
    versions = (6, 8, 13)
    function = "add"

    def element(self, args: Sequence[Expr]) -> Expr:
        return cast(super().element([widened(arg) for arg in args]), args[0].dtype)


@dataclass(frozen=True)
class Mean(Variadic):
    name = "Mean"
    versions = (6, 8, 13)
    function = "add"

    def element(self, args: Sequence[Expr]) -> Expr:
        total = super().element([widened(arg) for arg in args])
        return cast(apply("div", total, literal(len(args), total.dtype)), args[0].dtype)
