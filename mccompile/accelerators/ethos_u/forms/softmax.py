"""Softmax along the last axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...api import Unit
from .chain import Chain
from .families import Form, form
from .quantities import quantized, result_parameters, source
from .writing import Writing


@form("Softmax")
class Softmax(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        op: Any = chain.node.op
        if op.axis not in (-1, chain.node.output.type.rank - 1) or op.flattened:
            return "only along the last axis"
        if not chain.is_plain or chain.activation(unit) != 0:
            return "a softmax has no activation"
        right = result_parameters(unit) == (1 / 256, int(quantized(np.array(-np.inf), 1, 0, unit.makes[0])))
        return "" if right else "its result is not in steps of 1/256 from the least integer on"

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        value = source(chain.node)
        plain = range(value.type.rank)
        given = writing.ordered(value, plain)
        writing.net.operator("SOFTMAX", [given], writing.made(unit.makes[0], plain), "SoftmaxOptions", Beta=1.0)
        return ""
