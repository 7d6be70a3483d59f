"""Elementwise operators that are one scalar function or a short expression: unary, binary, comparison, logic."""

from __future__ import annotations

from dataclasses import dataclass

from ..expr.ir import Expr, apply, literal, operand
from .api import INJECTIVE, Fact, Lowering, Operator, Site, same_type


class Unary(Operator):
    """One operand, a result of the same type (or bool); `expr` says what an element is."""

    fusion = INJECTIVE

    def infer(self, site: Site) -> list[Fact]:
        return same_type(site, self.expr(operand(0, site.type(0).dtype)).dtype)

    def expr(self, x: Expr) -> Expr:
        raise NotImplementedError

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        to.set(0, to.map(self.expr(operand(0, x.buffer.dtype)), [x]))


@dataclass(frozen=True)
class Relu(Unary):
    name = "Relu"
    versions = (6, 13, 14)

    def expr(self, x: Expr) -> Expr:
        return apply("max", x, literal(0, x.dtype))
