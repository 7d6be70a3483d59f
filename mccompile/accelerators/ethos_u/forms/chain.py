"""A unit as one operator, with what its neighbours do to each channel of the result: factors, sums, bounds.

BatchNormalization, Add and Mul by constants, Relu, Clip and HardSigmoid become scales, biases and an activation.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from ....base.records import dataclass
from ....graph.ir import Node, Value
from ...api import Unit
from .quantities import is_activation, quantized, real_of, result_parameters

_ACTIVATIONS = {0: (-np.inf, np.inf), 1: (0.0, np.inf), 3: (0.0, 6.0), 2: (-1.0, 1.0)}  # as TFLite numbers them
_LINEAR = ("Add", "Sub", "Mul", "Div", "BatchNormalization")


@dataclass
class Chain:
    node: Node | None  # None: nothing but what is done to channels
    gain: np.ndarray = field(default_factory=lambda: np.ones(1))  # one, or one for each channel
    offset: np.ndarray = field(default_factory=lambda: np.zeros(1))
    low: float = -np.inf
    high: float = np.inf

    @property
    def is_plain(self) -> bool:
        return bool(np.all(self.gain == 1) and np.all(self.offset == 0))

    def activation(self, unit: Unit) -> int | None:
        """TFLite's that has these bounds once its result is rounded, if one has."""

        def rounded(*ends: float) -> list[np.ndarray]:
            return [quantized(np.asarray(end), *result_parameters(unit), unit.makes[0]) for end in ends]

        wanted = rounded(self.low, self.high)
        return next((number for number, ends in _ACTIVATIONS.items() if rounded(*ends) == wanted), None)


def chain_of(unit: Unit) -> Chain | str:
    """Or why it is none."""
    chain, value = Chain(None), None
    for node in unit.work:
        if len(node.outputs) != 1:
            return "an operator has several results"
        if value is None:
            first = next((each for each in node.inputs if is_activation(each)), None)
            if first is None or not _add(chain, node, first):
                chain.node = node
        elif value not in node.inputs or not _add(chain, node, value):
            return f"behind its operator stands {node.op.name}, which no activation of TFLite does"
        value = node.output
    return chain


def _add(chain: Chain, node: Node, value: Value) -> bool:
    """Whether the operator does no more to `value` than a chain can say."""
    op: Any = node.op
    bounds = (0.0, 1.0) if op.name == "HardSigmoid" else _bounds(node, value)
    axis = _channel_axis(chain.node, value.type.rank)
    step = (np.array([op.alpha]), np.array([op.beta])) if op.name == "HardSigmoid" else _linear(node, value, axis)
    if step is not None:
        if np.isfinite([chain.low, chain.high]).any():
            return False
        chain.gain, chain.offset = chain.gain * step[0], chain.offset * step[0] + step[1]
    if bounds is not None:
        low, high = bounds
        chain.low, chain.high = min(max(chain.low, low), high), min(max(chain.high, low), high)
    return step is not None or bounds is not None


def _bounds(node: Node, value: Value) -> tuple[float, float] | None:
    if node.op.name == "Relu":
        return 0.0, np.inf
    if node.op.name != "Clip" or node.inputs[0] is not value:
        return None
    ends = [-np.inf, np.inf]
    for place, end in enumerate(node.inputs[1:3]):
        number = real_of(end)
        if end is not None and (number is None or number.size != 1):
            return None
        ends[place] = ends[place] if number is None else float(number.item())
    return ends[0], ends[1]


def _linear(node: Node, value: Value, axis: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Factor and sum of each channel."""
    name = node.op.name
    if name not in _LINEAR or node.output.type.shape != value.type.shape:
        return None
    if name == "BatchNormalization":
        op: Any = node.op
        numbers = [real_of(each) for each in node.inputs[1:5]]
        if axis != 1 or node.inputs[0] is not value or op.training_mode or any(each is None for each in numbers):
            return None
        scale, bias, mean, variance = (np.asarray(each) for each in numbers)
        gain = scale / np.sqrt(variance + op.epsilon)
        return gain, bias - mean * gain
    place = int(node.inputs[0] is value)
    number = _by_channel(real_of(node.inputs[place]), value, axis)
    if number is None or node.inputs[1 - place] is not value:
        return None
    if name == "Add":
        return np.ones(1), number
    if name == "Sub":
        return (np.ones(1), -number) if place else (-np.ones(1), number)
    if name == "Div" and (not place or np.any(number == 0)):
        return None
    return (1 / number if name == "Div" else number), np.zeros(1)


def _by_channel(number: np.ndarray | None, value: Value, channels: int) -> np.ndarray | None:
    """A constant that is one number, or one for each channel."""
    rank = value.type.rank
    if number is None or number.ndim > rank:
        return None
    shape = (1,) * (rank - number.ndim) + number.shape
    others = [size for axis, size in enumerate(shape) if axis != channels]
    return number.ravel() if all(size == 1 for size in others) else None


def _channel_axis(node: Node | None, rank: int) -> int:
    """Of what an operator makes, or where there is none of a picture."""
    if node is None:
        return 1 if rank == 4 else rank - 1
    return rank - 1 if node.op.name in ("Gemm", "MatMul") else 1
