"""Cast and CastLike: elements converted to another type, as ONNX defines every pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..base.dtypes import DType, f32, of_onnx
from ..expr.ir import Expr, apply, cast, operand
from .api import INJECTIVE, Fact, Invalid, Lowering, Operator, Site, Unsupported
from .elementwise import Elementwise
from .known_elements import known_result


def conversion(x: Expr, to: DType, saturate: int, round_mode: str) -> Expr:
    """The converted element, or why it cannot be had."""
    for dtype in (x.dtype, to):
        if dtype.kind in ("string", "complex"):
            raise Unsupported(f"conversion of {x.dtype} to {to}")
    if to.name == "f8e8m0" and x.dtype is not to:
        if round_mode not in ("up", "down", "nearest"):
            raise Invalid(f"round_mode {round_mode!r} is not up, down or nearest")
        return cast(apply(f"power_{round_mode}{'' if saturate else '_wrap'}", cast(x, f32)), to)
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
        return conversion(args[0], target, self.saturate, self.round_mode)


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
        expr = conversion(operand(0, x.dtype), site.type(1).dtype, self.saturate, self.round_mode)
        return [Fact(replace(x, dtype=expr.dtype), known_result(expr, [site.value(0)], x.shape))]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        expr = conversion(operand(0, x.buffer.dtype), to.type().dtype, self.saturate, self.round_mode)
        to.set(0, x if expr == operand(0, x.buffer.dtype) else to.map(expr, [x]))
