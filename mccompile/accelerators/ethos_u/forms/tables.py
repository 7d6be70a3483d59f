"""Functions of one tensor, which Vela looks up in a table of 256 results."""

from __future__ import annotations

import numpy as np

from ....graph.ir import Node, Value
from ...api import Unit
from .chain import Chain
from .families import Form, form
from .quantities import attribute, given_parameters, real_of, source
from .rounded import Rounding, parts, rescaled, rounding_shift
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

    @staticmethod
    def rounds(there: Rounding) -> Value | None:
        node = there.chain.node
        assert node is not None
        if node.op.name in ("Sigmoid", "Tanh"):
            return None
        value = source(node)
        scale, zero = given_parameters(value)
        if node.op.name == "HardSwish":
            return there.looked_up(value, zero, lambda x: _hard_swish(x, scale, there.scale))
        whole, slope = scale / there.scale, float(np.float32(_slope(node)))
        return there.looked_up(value, zero, lambda x: np.where(x < 0, rescaled(x, whole * slope), rescaled(x, whole)))


def _hard_swish(x: np.ndarray, scale: float, result: float) -> np.ndarray:
    """In 16 bits, as TFLite's kernel does it."""
    fine = float(np.float32(1 / 128) * np.float32(scale))
    (part, left, right), (gate, more, less) = (parts(fine / each) for each in (result, float(np.float32(3 / 32768))))
    part, gate = (np.minimum((each + (1 << 15)) >> 16, 32767) for each in (part, gate))
    opened = _in_16(_high(_in_16((x * 128) << np.maximum(more - 1, 0)), gate) << np.minimum(more, 1))
    opened = (rounding_shift(opened, less) + (1 << 15)) >> 1
    product = opened * _high(x * 128, part)
    return np.asarray(rounding_shift(np.sign(product) * (np.abs(product) >> 15), right) << left)


def _in_16(numbers: np.ndarray) -> np.ndarray:
    return np.asarray(np.clip(numbers, -32768, 32767))


def _high(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of a product of 16 bits each, the upper 16, rounded."""
    return _in_16((a * b + (1 << 14)) >> 15)
