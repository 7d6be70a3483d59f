"""Operators whose result is their operand: Identity, and Dropout but in training."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.dtypes import DType, bool_, f32, f64
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.ir import apply, cast, literal, operand
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, Unsupported, make
from .random import drawn, seed_of

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class Identity(Operator):
    versions = (1, 13, 14, 16, 19, 21, 23, 24, 25)
    fusion = INJECTIVE

    def infer(self, site: Site) -> list[Fact]:
        return [site.fact(0)]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.input(0))

    def gradient(self, back: Backward) -> None:
        back.give(0, back.of())


@dataclass(frozen=True)
class Dropout(Operator):
    """In inference it drops nothing, in training it draws what it drops. Operands: data, ratio, training_mode."""

    versions = (1, 6, 7, 10, 12, 13, 22)
    fusion = INJECTIVE
    random = True  # in training; in inference it goes away anyway
    seed: int | None = None
    mask: DType = bool_
    mask_is_defined: bool = True  # in inference

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version < 12 and node.outputs > 1:
            node.attributes["mask_is_defined"] = False  # most models do not read it
        if node.version < 10 and node.outputs > 1 and node.inputs[0] is not None:
            node.attributes["mask"] = node.inputs[0].type.dtype
        if node.version < 7:
            node.attributes.pop("is_test", None)
            node.attributes.pop("consumed_inputs", None)
        if node.version < 12:
            node.attribute_to_input("ratio", 1, np.float32)
        return make(cls, node)

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        return {} if self.seed is None else {"seed": self.seed}, None

    def is_training(self, site: Site) -> bool:
        """May it drop anything?"""
        if not site.has(2) or (site.is_known(2) and site.known(2, "training_mode") == [False]):
            return False
        ratio = site.fact(1).constant if site.has(1) else None
        return ratio is None or bool(ratio.array.any())

    def infer(self, site: Site) -> list[Fact]:
        if site.has(2) and (site.type(2).dtype is not bool_ or site.type(2).count != 1):
            raise Invalid(f"training_mode is {site.type(2)}, not one bool")
        if self.is_training(site) and site.has(1) and (site.type(1).count != 1 or not site.type(1).dtype.is_float):
            raise Invalid(f"the ratio is {site.type(1)}, not one float")
        type = site.type(0)
        value = None if self.is_training(site) else site.value(0)
        return [Fact(type, value), Fact(TensorType(self.mask, type.shape))][: site.outputs]

    def lower(self, to: Lowering) -> None:
        if self.is_training(to.site):
            self.lower_training(to)
            return
        to.set(0, to.input(0))
        if not self.mask_is_defined and to.is_read(1):
            raise Unsupported("the mask of Dropout below opset 12 has no meaning in inference", "leave out the output")
        if to.wants(1):
            to.set(1, to.map(literal(1, self.mask), [], to.type(1).shape))

    def lower_training(self, to: Lowering) -> None:
        x = to.input(0)
        dtype = x.buffer.dtype
        ratio = to.reshape(to.input(1), ()) if to.has(1) else to.map(literal(0.5, f32), [], ())
        training = to.reshape(to.input(2), ())
        kept = apply("greater_equal", operand(0, f64), cast(operand(1, ratio.buffer.dtype), f64))
        kept = apply("or", kept, apply("not", operand(2, bool_)))
        mask = drawn(to, False, seed_of(self.seed), kept, x.shape, [ratio, training])
        rate = operand(2, ratio.buffer.dtype)
        scale = apply("div", literal(1, rate.dtype), apply("sub", literal(1, rate.dtype), rate))
        masked = apply("mul", apply("mul", cast(operand(1, bool_), dtype), operand(0, dtype)), cast(scale, dtype))
        changed = apply("select", operand(3, bool_), masked, operand(0, dtype))
        to.set(0, to.map(changed, [x, mask, ratio, training], x.shape))
        if to.wants(1):
            to.set(1, mask)

    def gradient(self, back: Backward) -> None:
        back.nothing(1)
        if not self.is_training(back.site):
            back.give(0, back.of())
            return
        dtype = back.input(0).type.dtype
        ratio = back.input(1) if back.has(1) else back.constant(np.array(0.5, np.float32))
        given, kept, training = operand(0, dtype), operand(1, bool_), operand(3, bool_)
        rate = operand(2, ratio.type.dtype)
        scale = cast(apply("div", literal(1, rate.dtype), apply("sub", literal(1, rate.dtype), rate)), dtype)
        dropped = apply("select", kept, apply("mul", given, scale), literal(0, dtype))
        one = [back.reshape(value, ()) for value in (ratio, back.input(2))]
        expr = apply("select", training, dropped, given)
        back.give(0, back.pointwise(expr, back.of(), back.result(1), *one))
