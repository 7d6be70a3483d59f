"""Operators whose result is their operand: Identity, and Dropout of a trained network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.dtypes import DType, bool_
from ..base.tensor import TensorType
from ..expr.ir import literal
from .api import INJECTIVE, Fact, Lowering, OnnxNode, Operator, Site, Unsupported, make


@dataclass(frozen=True)
class Identity(Operator):
    name = "Identity"
    versions = (1, 13, 14, 16, 19, 21, 23, 24, 25)
    fusion = INJECTIVE

    def infer(self, site: Site) -> list[Fact]:
        return [site.fact(0)]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.input(0))


@dataclass(frozen=True)
class Dropout(Operator):
    """In inference it drops nothing. Operands: data, ratio, training_mode."""

    name = "Dropout"
    versions = (1, 6, 7, 10, 12, 13, 22)
    fusion = INJECTIVE
    seed: int | None = None
    mask: DType = bool_

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version < 10 and node.outputs > 1 and node.inputs[0] is not None:
            node.attributes["mask"] = node.inputs[0].type.dtype  # undefined in inference: most models do not read it
        if node.version < 7:
            node.attributes.pop("is_test", None)
            node.attributes.pop("consumed_inputs", None)
        if node.version < 12:
            node.attribute_to_input("ratio", 1, np.float32)
        return make(cls, node)

    def to_onnx(self) -> tuple[dict[str, Any], int | None]:
        return {} if self.seed is None else {"seed": self.seed}, None

    def infer(self, site: Site) -> list[Fact]:
        if site.has(2) and site.known(2, "training_mode") != [False]:
            raise Unsupported("training_mode is true", "export the network for inference")
        return [site.fact(0), Fact(TensorType(self.mask, site.shape(0)))][: site.outputs]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.input(0))
        if self.mask is not bool_ and to.is_read(1):
            raise Unsupported("the mask of Dropout below opset 10 has no meaning in inference", "leave out the output")
        if to.wants(1):
            to.set(1, to.map(literal(1, self.mask), [], to.type(1).shape))
