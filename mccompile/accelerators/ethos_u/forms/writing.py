"""A region while it is written: the tensors of values, and how the axes of these lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....graph.ir import Value
from ...api import Order
from ..flat import Network
from .quantities import LAST, channels_last, sizes
from .weights import Weights


class CannotTurn(Exception):
    """Axes that no TRANSPOSE of Vela brings into the order that is needed."""


class Writing:
    """`scales`: scale and zero point of each value."""

    def __init__(self, scales: Mapping[Value, tuple[Any, Any]]) -> None:
        self.net, self.scales = Network(), scales
        self.orders: dict[Value, Order] = {}
        self.numbers: dict[Value, int] = {}

    def known(self, value: Value) -> tuple[Any, np.ndarray]:
        """Scale and zero point of a value, which has the type of its numbers; of what is only moved, any."""
        scale, zero = self.scales.get(value, (1, 0))
        return scale, np.asarray(zero, value.type.dtype.numpy)

    def made(self, value: Value, order: Sequence[int] | None = None) -> int:
        """The tensor of a value."""
        if order is not None:
            self.orders[value] = tuple(order)
        if value not in self.numbers:
            shape = [sizes(value)[axis] for axis in self.orders[value]]
            self.numbers[value] = self.net.tensor(shape, *self.known(value))
        return self.numbers[value]

    def ordered(self, value: Value, order: Sequence[int]) -> int:
        """The tensor of a value with its axes in this order."""
        known = self.known(value)
        return self.turned(self.made(value), sizes(value), self.orders[value], tuple(order), known)

    def picture(self, value: Value) -> int:
        """The tensor of a picture, channels last; a signal is one of a single row."""
        given = self.ordered(value, channels_last(value.type.rank))
        known = self.known(value)
        return given if value.type.rank == 4 else self.reshaped(given, picture_sizes(value), *known)

    def made_picture(self, value: Value, write: Callable[[int], None]) -> None:
        """The tensor of a picture that `write` makes, or of a signal that it makes as a picture of a single row."""
        if value.type.rank == 4:
            write(self.made(value, LAST))
            return
        known, order = self.known(value), channels_last(value.type.rank)
        made = self.net.tensor(picture_sizes(value), *known)
        write(made)
        self.orders[value] = order
        self.numbers[value] = self.reshaped(made, [sizes(value)[axis] for axis in order], *known)

    def turned(self, number: int, shape: Sequence[int], has: Order, wants: Order, known: tuple[Any, np.ndarray]) -> int:
        if has == wants:
            return number
        long = [[axis for axis in order if shape[axis] != 1] for order in (has, wants)]
        laid = [shape[axis] for axis in wants]
        if long[0] != long[1]:
            first = long[0].index(long[1][0])
            if long[0][first:] + long[0][:first] != long[1]:
                raise CannotTurn
            rows, columns = (_product(shape[axis] for axis in part) for part in (long[0][:first], long[0][first:]))
            flat = self.reshaped(number, [rows, columns], *known)
            number = self.net.tensor([columns, rows], *known)
            self.net.operator("TRANSPOSE", [flat, self.net.ints([1, 0])], number, "TransposeOptions")
        return self.reshaped(number, laid, *known)

    def reshaped(self, number: int, shape: Sequence[int], scale: Any, zero: np.ndarray) -> int:
        made = self.net.tensor(shape, scale, zero)
        self.net.operator("RESHAPE", [number, self.net.ints(shape)], made, "ReshapeOptions")
        return made

    def bias(self, value: Value, weights: Weights) -> int:
        scales = float(self.scales[value][0]) * weights.scales.astype(float)
        return self.net.tensor(weights.bias.shape, scales, 0, weights.bias)


def picture_sizes(value: Value) -> list[int]:
    """Channels last."""
    count, channels, *pixels = sizes(value)
    return [count, *[1] * (2 - len(pixels)), *pixels, channels]


def _product(sizes: Iterable[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found
