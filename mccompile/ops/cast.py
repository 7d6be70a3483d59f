"""Cast and CastLike: elements converted to another type, as ONNX defines every pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..base.dtypes import DType, of_onnx
from ..expr.ir import Expr, cast, operand
from .api import INJECTIVE, Fact, Invalid, Lowering, Operator, Site, Unsupported
from .elementwise import Elementwise
from .known_elements import known_result


def conversion(x: Expr, to: DType, saturate: int) -> Expr:
    """The converted element, or why it cannot be had."""
    for dtype in (x.dtype, to):
        if dtype.kind in ("string", "complex"):
            raise Unsupported(f"conversion of {x.dtype} to {to}")
    if to.name == "f8e8m0" and x.dtype is not to:
        raise Unsupported("conversion to f8e8m0", "it can be read as a scale, but not be made")
    return cast(x, to, saturate=bool(saturate))


@dataclass(frozen=True)
class Cast(Elementwise):
    name = "Cast"
    versions = (6, 9, 13, 19, 21, 23, 24, 25, 28)
    takes = "elements of any type"
    to: int
    saturate: int = 1
    round_mode: str = "up"

    def element(self, args: Sequence[Expr]) -> Expr:
        target = of_onnx(self.to)
        if target is None:
            raise Unsupported(f"element type {self.to} is not known")
        return conversion(args[0], target, self.saturate)


@dataclass(frozen=True)
class CastLike(Operator):
    """The type is that of operand 1, whose elements do not matter."""

    name = "CastLike"
    versions = (15, 19, 21, 23, 24, 25)
    fusion = INJECTIVE
    saturate: int = 1
    round_mode: str = "up"

    def infer(self, site: Site) -> list[Fact]:
        if not site.has(1):
            raise Invalid("target_type is missing")
        x = site.type(0)
        expr = conversion(operand(0, x.dtype), site.type(1).dtype, self.saturate)
        return [Fact(replace(x, dtype=expr.dtype), known_result(expr, [site.value(0)], x.shape))]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        expr = conversion(operand(0, x.buffer.dtype), to.type().dtype, self.saturate)
        to.set(0, x if expr == operand(0, x.buffer.dtype) else to.map(expr, [x]))
