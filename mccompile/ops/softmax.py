"""Softmax, LogSoftmax, Hardmax along an axis.

Up to opset 12 they worked on all axes from `axis` on, as one: `flattened` keeps that meaning.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, ClassVar

from ..base.dims import product
from ..base.dtypes import i64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import apply, cast, index, literal, operand
from ..kinds.arg_reduce import ArgReduce
from ..kinds.normalize import Normalize
from .api import OPAQUE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, make, normal_axis
from .rules.elementwise import check_dtypes, wide

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class AlongAxis(Operator, abstract=True):
    """Subclasses have no other attributes."""

    versions: ClassVar[tuple[int, ...]] = (1, 11, 13)
    fusion: ClassVar[str] = OPAQUE
    axis: int = -1
    flattened: bool = False

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version < 13:
            axis = node.attributes.setdefault("axis", 1)
            x = node.inputs[0] if node.inputs else None
            only_last = x is not None and axis in (-1, x.type.rank - 1)  # then both meanings are the same
            node.attributes["flattened"] = not only_last
        return make(cls, node)

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        return {"axis": self.axis}, 12 if self.flattened else None

    def infer(self, site: Site) -> list[Fact]:
        x = site.type(0)
        check_dtypes(self.name, "floats", [x])
        if not x.rank:
            raise Invalid("a scalar has no axis")
        normal_axis(self.axis, x.rank)
        return [Fact(x)]

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return (
            None if self.flattened else dataclasses.replace(self, axis=order.index(normal_axis(self.axis, len(order))))
        )

    def axes(self, rank: int) -> tuple[int, ...]:
        first = normal_axis(self.axis, rank)
        return tuple(range(first, rank)) if self.flattened else (first,)


class Exponential(AlongAxis, abstract=True):
    measure: ClassVar[str]

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        dtype = x.buffer.dtype
        accumulator = wide(dtype)
        epilogue = None if accumulator is dtype else cast(operand(0, accumulator), dtype)
        kind = Normalize(self.axes(len(x.shape)), self.measure, accumulator, epilogue=epilogue)
        to.set(0, to.call(kind, [x], x.type)[0])


class Softmax(Exponential):
    measure = "softmax"

    def gradient(self, back: Backward) -> None:
        y, of = back.result(), back.of()
        mean = back.sum(back.op("Mul", y, of), self.axes(y.type.rank))
        share, given, middle = (operand(i, y.type.dtype) for i in range(3))
        back.give(0, back.pointwise(apply("mul", share, apply("sub", given, middle)), y, of, mean))


class LogSoftmax(Exponential):
    measure = "log_softmax"

    def gradient(self, back: Backward) -> None:
        y, of = back.result(), back.of()
        total = back.sum(of, self.axes(y.type.rank))
        log, given, whole = (operand(i, y.type.dtype) for i in range(3))
        back.give(0, back.pointwise(apply("sub", given, apply("mul", apply("exp", log), whole)), y, of, total))


class Hardmax(AlongAxis):
    """1 where the first of the largest elements is, 0 elsewhere."""

    def lower(self, to: Lowering) -> None:
        x = to.input(0)
        shape, dtype = x.shape, x.buffer.dtype
        axis = normal_axis(self.axis, len(shape))
        if self.flattened:
            x, axis = to.reshape(x, (product(shape[:axis]), product(shape[axis:]))), 1
        type = TensorType(i64, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))
        where = to.call(ArgReduce(axis, largest=True), [x], type)[0]
        chosen = apply("equal", index(axis), operand(0, i64))
        result = to.map(apply("select", chosen, literal(1, dtype), literal(0, dtype)), [where], x.shape)
        to.set(0, to.reshape(result, shape))

    def gradient(self, back: Backward) -> None:
        back.nothing(0)
