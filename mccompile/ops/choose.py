"""Where and Clip: elements chosen from operands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..base.dtypes import bool_
from ..base.records import dataclass
from ..base.tensor import TensorType
from ..expr.derivative import derivative
from ..expr.ir import Expr, apply, operand
from .api import INJECTIVE, Fact, Invalid, Lowering, OnnxNode, Operator, Site, make
from .rules.elementwise import Elementwise, check_count, check_dtypes
from .rules.known_elements import known_result

if TYPE_CHECKING:
    from .rules.backward import Backward


@dataclass(frozen=True)
class Where(Elementwise):
    versions = (9, 16)
    takes = "elements of any type"

    def check(self, types: Sequence[TensorType]) -> None:
        check_count(self.name, types, 3)
        check_dtypes(self.name, self.takes, types[1:])
        if types[0].dtype is not bool_:
            raise Invalid(f"the condition is {types[0]}, not bool")

    def element(self, args: Sequence[Expr]) -> Expr:
        return apply("select", *args)


@dataclass(frozen=True)
class Clip(Operator):
    """Bounds are scalar operands, each optional; where the lower one is above the upper, the upper one wins."""

    versions = (1, 6, 11, 12, 13)
    fusion = INJECTIVE

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        x = node.inputs[0] if node.inputs else None
        node.attributes.pop("consumed_inputs", None)
        if node.version < 11 and x is not None:
            largest = float(np.finfo(np.float32).max)
            for position, (name, default) in enumerate((("min", -largest), ("max", largest)), 1):
                if node.attributes.get(name, default) == default:
                    node.attributes.pop(name, None)  # the default of these versions: no bound
                node.attribute_to_input(name, position, x.type.dtype.numpy)
        return make(cls, node)

    def reordered(self, order: tuple[int, ...]) -> Operator | None:
        return self

    @staticmethod
    def expr(operands: dict[int, Expr]) -> Expr:
        """Over the operands that are present, by their position in the operator."""
        x = operands[0]
        if 1 in operands:
            x = apply("max", x, operands[1])
        return apply("min", x, operands[2]) if 2 in operands else x

    def infer(self, site: Site) -> list[Fact]:
        present = [i for i in range(3) if site.has(i)]
        if 0 not in present:
            raise Invalid("the input is missing")
        types = [site.type(i) for i in present]
        check_dtypes(self.name, "numbers", types)
        for i in present[1:]:
            if site.type(i).count != 1:
                raise Invalid(f"a bound is {site.type(i)}, not a scalar")
        expr = self.expr({i: operand(n, type.dtype) for n, (i, type) in enumerate(zip(present, types, strict=True))})
        values = [value if i == 0 or value is None else value.reshape(()) for i in present for value in [site.value(i)]]
        return [Fact(site.type(0), known_result(expr, values, site.shape(0)))]

    def lower(self, to: Lowering) -> None:
        present = [i for i in range(3) if to.has(i)]
        expr = self.expr({i: operand(n, to.input(i).buffer.dtype) for n, i in enumerate(present)})
        if len(present) == 1:
            to.set(0, to.input(0))
            return
        bounds = [to.reshape(to.input(i), ()) for i in present[1:]]
        to.set(0, to.map(expr, [to.input(0), *bounds], to.type().shape))

    def gradient(self, back: Backward) -> None:
        present = [i for i in range(3) if back.has(i)]
        expr = self.expr({i: operand(n, back.input(i).type.dtype) for n, i in enumerate(present)})
        ins = [back.input(i) if i == 0 else back.reshape(back.input(i), ()) for i in present]
        for number, index in enumerate(present):
            if back.wants(index):
                back.sloped(index, derivative(expr, number), ins)
