"""Units in the rounding of TFLite's kernels, which Vela's operators have too: for the stand-in.

A sum is multiplied by 32 bits of its factor and rounded, halves upwards; what is shifted then is rounded once more,
halves away from zero.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from ....base.constant import Constant
from ....base.dtypes import i8, i64
from ....graph.ir import Graph, Op, Value
from ....ops.binary import Add, Div, Mul, Sub
from ....ops.cast import Cast
from ....ops.fixed_point import Lookup
from ....ops.unary import Abs, Sign
from ....ops.variadic import Max, Min
from ...api import Unit
from .chain import Chain
from .quantities import result_parameters

_HALF, _ONE = 1 << 30, 1 << 31


class Rounding:
    """What is computed instead of a unit."""

    def __init__(self, graph: Graph, unit: Unit, chain: Chain) -> None:
        self.graph, self.unit, self.chain = graph, unit, chain
        self.scale, self.zero = result_parameters(unit)
        self._names = (f"{unit.makes[0].name}/there{n}" for n in itertools.count())

    def step(self, op: Op, *inputs: Value | None) -> Value:
        return self.graph.compute(op, inputs, [next(self._names)], self.unit.provenance)[0]

    def number(self, array: Any, dtype: Any = np.int64) -> Value:
        return Value.of_constant(next(self._names), Constant.of(np.asarray(array, dtype)))

    def wide(self, value: Value) -> Value:
        return self.step(Cast(to=i64.onnx), value)

    def rescaled(self, value: Value, factor: Any, count: int = 1) -> Value:
        """Integers of 64 bits times one factor, or one for each channel, in the shape in which it is repeated; for
        means divided by a count."""
        multiplier, left, right = parts(factor, count)
        if np.any(left):
            value = self.step(Mul(), value, self.number(1 << left))
        product = self.step(Mul(), value, self.number(multiplier))
        above = self.step(Add(), product, self.number(_ONE * _ONE + _HALF))  # Div rounds to zero: here downwards
        high = self.step(Sub(), self.step(Div(), above, self.number(_ONE)), self.number(_ONE))
        if not np.any(right):
            return high
        nudged = self.step(Add(), self.step(Abs(), high), self.number((1 << right) >> 1))
        return self.step(Mul(), self.step(Sign(), high), self.step(Div(), nudged, self.number(1 << right)))

    def result(self, value: Value) -> Value:
        """With the zero point, between the bounds of the unit."""
        low, high = self.chain.ends(self.unit)
        moved = self.step(Add(), value, self.number(self.zero))
        inside = self.step(Min(), self.step(Max(), moved, self.number(low)), self.number(high))
        return self.step(Cast(to=i8.onnx), inside)

    def looked_up(self, value: Value, zero: float, function: Callable[[np.ndarray], np.ndarray]) -> Value:
        """A function of the int8 numbers without their zero point, between the bounds of the unit."""
        numbers = np.arange(256, dtype=np.uint8).view(np.int8).astype(np.int64)
        low, high = (int(end) for end in self.chain.ends(self.unit))
        found = function(numbers - int(zero)) + int(self.zero)
        return self.step(Lookup(), value, self.number(np.clip(found, low, high), np.int8))


def parts(factor: Any, count: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Factors as multipliers of 31 bits, with what is shifted in front and behind."""
    part, shift = np.frexp(np.asarray(factor, np.float64))
    multiplier, shift = np.floor(part * _ONE + 0.5).astype(np.int64), shift.astype(np.int64)
    multiplier, shift = (np.where(multiplier == _ONE, *each) for each in ((_HALF, multiplier), (shift + 1, shift)))
    multiplier, shift = (np.where(shift < -31, 0, each) for each in (multiplier, shift))
    more = np.minimum(min(count.bit_length() - 1, 32), 31 + shift)
    multiplier, shift = (multiplier << more) // count, shift - more
    return multiplier, np.maximum(shift, 0), np.maximum(-shift, 0)


def rescaled(numbers: np.ndarray, factor: float) -> np.ndarray:
    """As `Rounding.rescaled`."""
    multiplier, left, right = parts(factor)
    high = ((numbers << left) * multiplier + _HALF) >> 31
    return rounding_shift(high, right)


def rounding_shift(numbers: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Halves away from zero."""
    return np.asarray(np.sign(numbers) * ((np.abs(numbers) + ((1 << right) >> 1)) >> right))
