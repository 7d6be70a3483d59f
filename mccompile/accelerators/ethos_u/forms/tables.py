"""Functions of one tensor, which Vela looks up in a table of 256 results."""

from __future__ import annotations

import numpy as np

from ....graph.ir import Node
from ...api import Unit
from .chain import Chain
from .families import Form, form
from .quantities import attribute, real_of, source
from .writing import Writing

_NAMES = {
    "Sigmoid": ("LOGISTIC", ""),
    "Tanh": ("TANH", ""),
    "HardSwish": ("HARD_SWISH", "HardSwishOptions"),
    "LeakyRelu": ("LEAKY_RELU", "LeakyReluOptions"),
    "PRelu": ("LEAKY_RELU", "LeakyReluOptions"),
}


def _slope(node: Node) -> float:
    """NaN where there are several."""
    if node.op.name == "LeakyRelu":
        return float(attribute(node, "alpha", 0.01))
    number = real_of(node.inputs[1])
    return float("nan") if number is None or np.unique(number).size != 1 else float(number.ravel()[0])


@form(*_NAMES)
class Table(Form):
    @staticmethod
    def takes(unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        if _NAMES[chain.node.op.name][0] == "LEAKY_RELU" and not _slope(chain.node) >= 0:
            return "only one slope for all, which is not negative"
        return "" if chain.is_plain and chain.activation(unit) == 0 else "it has no activation"

    @staticmethod
    def write(writing: Writing, unit: Unit, chain: Chain) -> str:
        assert chain.node is not None
        name, options = _NAMES[chain.node.op.name]
        value = source(chain.node)
        given = writing.made(value)
        fields = {"Alpha": _slope(chain.node)} if name == "LEAKY_RELU" else {}
        writing.net.operator(name, [given], writing.made(unit.makes[0], writing.orders[value]), options, **fields)
        return ""
