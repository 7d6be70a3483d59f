"""Cast and CastLike: elements converted to another type, as ONNX defines every pair.

A float becomes the shortest text that leads back to it, nan, inf or -inf; a bool becomes True or False. A text that is
no number ends the run with MCC_ERR_STRING_NUMBER.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..base.dims import upper
from ..base.dtypes import DType, bool_, f32, of_onnx, string
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import Expr, apply, cast, operand
from ..kinds.read_numbers import ReadNumbers
from ..kinds.write_numbers import WriteNumbers
from ..program.ir import If, Stop, View
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make
from .rules.elementwise import Elementwise
from .rules.known_elements import known_result
from .strings import made

if TYPE_CHECKING:
    from .rules.backward import Backward

_READ = frozenset({"f64", "f32", "f16", "bf16"})
_WRITTEN = _READ | {"f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f4e2m1"}
_NAMES = (  # of element types in the first opset, by ONNX's numbers from 1 on
    "FLOAT", "UINT8", "INT8", "UINT16", "INT16", "INT32", "INT64", "STRING", "BOOL", "FLOAT16", "DOUBLE", "UINT32",
    "UINT64",
)  # fmt: skip
_FLOAT_BYTES = 24  # that the text of a float takes at most


def conversion(x: Expr, to: DType, saturate: int, round_mode: str) -> Expr:
    """The converted element, or why it cannot be had."""
    for dtype in (x.dtype, to):
        if dtype.kind == "complex" or (dtype is string and x.dtype is not to):
            raise Unsupported(f"conversion of {x.dtype} to {to}")
    if to.name == "f8e8m0" and x.dtype is not to:
        if round_mode not in ("up", "down", "nearest"):
            raise Invalid(f"round_mode {round_mode!r} is not up, down or nearest")
        return cast(apply(f"power_{round_mode}{'' if saturate else '_wrap'}", cast(x, f32)), to)
    return cast(x, to, saturate=bool(saturate))


def converted_fact(site: Site, to: DType, saturate: int, round_mode: str) -> Fact:
    """What is known of operand 0 as elements of another type."""
    x = site.type(0)
    if (x.dtype is string) is (to is string):
        expr = conversion(operand(0, x.dtype), to, saturate, round_mode)
        return Fact(replace(x, dtype=to), known_result(expr, [site.value(0)], x.shape))
    number, known = (to, _READ) if x.dtype is string else (x.dtype, _WRITTEN)
    if not (number.is_integer or number.name in known or (number is bool_ and to is string)):
        raise Unsupported(f"conversion of {x.dtype} to {to}")
    return Fact(replace(x, dtype=to))


def converted(to: Lowering, x: View, dtype: DType, saturate: int, round_mode: str) -> View:
    source = x.buffer.dtype
    if (source is string) is (dtype is string):
        expr = conversion(operand(0, source), dtype, saturate, round_mode)
        return x if expr == operand(0, source) else to.map(expr, [x])
    if dtype is string:
        width = _FLOAT_BYTES if source.is_float else max(len(str(source.low)), len(str(source.high)), len("False"))
        return made(to, WriteNumbers(), [x], x.shape, upper(x.type.count) * width)
    numbers, is_wrong = to.call(ReadNumbers(), [x], TensorType(dtype, x.shape), TensorType(bool_, ()))
    stop = Stop("a text is not a number, or too large", to.provenance, "STRING_NUMBER")
    to.body.append(If(is_wrong, [stop], [], to.provenance))
    return numbers


@dataclass(frozen=True)
class Cast(Elementwise):
    versions = (1, 6, 9, 13, 19, 21, 23, 24, 25, 28)
    takes = "elements of any type"
    to: int
    saturate: int = 1
    round_mode: str = "up"

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version == 1:  # the type by its name
            name = str(node.attributes.get("to", "")).upper()
            if name not in _NAMES:
                raise Invalid(f"there is no element type {name!r}")
            node.attributes["to"] = 1 + _NAMES.index(name)
        return make(cls, node)

    def target(self) -> DType:
        target = of_onnx(self.to)
        if target is None:
            raise Unsupported(f"element type {self.to} is not known")
        return target

    def element(self, args: Sequence[Expr]) -> Expr:
        return conversion(args[0], self.target(), self.saturate, self.round_mode)

    def infer(self, site: Site) -> list[Fact]:
        return [converted_fact(site, self.target(), self.saturate, self.round_mode)]

    def lower(self, to: Lowering) -> None:
        to.set(0, converted(to, to.input(0), self.target(), self.saturate, self.round_mode))


@dataclass(frozen=True)
class CastLike(Operator):
    """The type is that of operand 1, whose elements do not matter."""

    versions = (15, 19, 21, 23, 24, 25)
    fusion = INJECTIVE
    saturate: int = 1
    round_mode: str = "up"

    def infer(self, site: Site) -> list[Fact]:
        if not site.has(1):
            raise Invalid("target_type is missing")
        return [converted_fact(site, site.type(1).dtype, self.saturate, self.round_mode)]

    def lower(self, to: Lowering) -> None:
        to.set(0, converted(to, to.input(0), to.type().dtype, self.saturate, self.round_mode))

    def gradient(self, back: Backward) -> None:
        back.nothing(1)
        back.give(0, back.op("CastLike", back.of(), back.input(0)))
