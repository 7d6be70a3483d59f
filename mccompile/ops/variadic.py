"""Operators of any number of operands: Max, Min, Sum, Mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast, literal, operand
from .api import Fact, Lowering, Site
from .rules.elementwise import Elementwise, widened

AT_ONCE = 16  # operands of one call: as many as fused calls have


class Variadic(Elementwise, abstract=True):
    function: ClassVar[str] = ""

    def element(self, args: Sequence[Expr]) -> Expr:
        return self.finished(self.combined(args), len(args), args[0])

    def combined(self, args: Sequence[Expr]) -> Expr:
        return reduce(lambda a, b: apply(self.function, a, b), args)

    def finished(self, total: Expr, count: int, like: Expr) -> Expr:
        """The result from what so many operands, the first of which is `like`, come to."""
        return total

    def infer(self, site: Site) -> list[Fact]:
        present = [i for i in range(len(site.facts)) if site.has(i)]
        if len(present) <= AT_ONCE:
            return super().infer(site)
        types = [site.type(i) for i in present]
        self.check(types)
        return [Fact(TensorType(types[0].dtype, self.result_shape([type.shape for type in types])))]

    def lower(self, to: Lowering) -> None:
        """Many operands a few at a time: an expression of thousands is more than C compilers take."""
        ins = to.inputs()
        if len(ins) <= AT_ONCE:
            super().lower(to)
            return
        shape, like = to.type().shape, operand(0, ins[0].buffer.dtype)
        total, rest = ins[0], ins[1:]
        while rest:
            some, rest = [total, *rest[: AT_ONCE - 1]], rest[AT_ONCE - 1 :]
            expr = self.combined([operand(i, view.buffer.dtype) for i, view in enumerate(some)])
            expr = expr if rest else self.finished(expr, len(ins), like)
            total = to.map(expr, some, shape)
        to.set(0, total)


class _Total(Variadic, abstract=True):
    """Sums are made in a type that is wide enough, and rounded once."""

    function = "add"

    def combined(self, args: Sequence[Expr]) -> Expr:
        return super().combined([widened(arg) for arg in args])

    def finished(self, total: Expr, count: int, like: Expr) -> Expr:
        return cast(total, like.dtype)


@dataclass(frozen=True)
class Max(Variadic):
    versions = (6, 8, 12, 13)
    takes = "numbers"
    function = "max"


@dataclass(frozen=True)
class Min(Variadic):
    versions = (6, 8, 12, 13)
    takes = "numbers"
    function = "min"


@dataclass(frozen=True)
class Sum(_Total):
    versions = (6, 8, 13)


@dataclass(frozen=True)
class Mean(_Total):
    versions = (6, 8, 13)

    def finished(self, total: Expr, count: int, like: Expr) -> Expr:
        return super().finished(apply("div", total, literal(count, total.dtype)), count, like)
