"""Operators whose result is their operand: Identity, and Dropout of a trained network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.dtypes import bool_
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
    versions = (7, 10, 12, 13, 22)
    fusion = INJECTIVE
    seed: int | None = None

    @classmethod
    def from_onnx(cls, node: OnnxNode) -> Operator:
        if node.version < 10 and node.outputs > 1:
            raise Unsupported("the mask of Dropout below opset 10 has no meaning in inference", "leave out the output")
        if node.version < 12:
            node.attribute_to_input("ratio", 1, np.float32)
        return make(cls, node)

    def infer(self, site: Site) -> list[Fact]:
        if site.has(2) and site.known(2, "training_mode") != [False]:
            raise Unsupported("training_mode is true", "export the network for inference")
        return [site.fact(0), Fact(TensorType(bool_, site.shape(0)))][: site.outputs]

    def lower(self, to: Lowering) -> None:
        to.set(0, to.input(0))
        if to.wants(1):
            to.set(1, to.map(literal(True, bool_), [], to.type(1).shape))
