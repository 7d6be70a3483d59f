"""Integer convolutions and products as steps of channels: where weights are zero, and what constant channels add to
sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from ....graph.ir import Node, Value
from ....ops.conv import ConvInteger, ConvTransposeInteger
from ....ops.matmul import MatMulInteger
from .channel_moves import tap_ranges
from .channels import Axes, Coupled, Cutting, Known, Masks, Step


class _Weights:
    """Constant weights as rows [channels of the result, what each of them sums, taps]."""

    def __init__(self, node: Node) -> None:
        value = node.inputs[1]
        assert value is not None and value.constant is not None
        turned = not isinstance(node.op, ConvInteger)
        self.axes = (1, 0) if turned else (0, 1)  # of the operand: that of the result's channels, and the other
        self.array = value.constant.array
        self.rows = self.array.swapaxes(0, 1) if turned else self.array
        self.taps = tuple(range(2, self.rows.ndim))
        zero = zero_point(node, 2)
        self.zero = int(zero[0]) if zero is not None and len(zero) == 1 else None  # None: not one that is known
        zeros = zero_point(node, 3)
        assert zeros is not None
        self.zeros = zeros.reshape(-1, *(1,) * (self.rows.ndim - 1))
        self.nonzero = (self.rows != self.zeros).any(self.taps)
        self.ranges: Sequence[set[tuple[int, int]]] = []
        if isinstance(node.op, ConvInteger):
            x = node.site().shape(0)
            self.ranges = tap_ranges(node.op.window(node.site()), x[2:], node.output.type.shape[2:])
        self.alike = not isinstance(node.op, ConvTransposeInteger)  # do all places see the same taps, but for borders?

    def added(self, columns: slice | np.ndarray, x: Known, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """What these columns, over the channels `places` of x, add to the sums of each channel: where that is one
        number everywhere, and which."""
        shape = len(self.rows), places.shape[1]
        if self.zero is None:
            return np.zeros(shape, bool), np.zeros(shape, np.int64)
        numbers = x.numbers[places].astype(np.int64) - self.zero
        one, total = x.where[places] & (numbers == 0), np.zeros(shape, np.int64)
        if self.alike:
            weights = self.rows[:, columns].astype(np.int64) - self.zeros
            inside = [tuple(slice(*ends) for ends in ranges) for ranges in product(*self.ranges)]
            total, *others = (weights[(..., *part)].sum(self.taps) for part in inside)
            one = x.where[places] & (np.all([other == total for other in others], 0) | (numbers == 0))
        return np.broadcast_to(one, shape), np.where(one, total * numbers, 0)


def zero_point(node: Node, position: int) -> np.ndarray | None:
    """All its numbers; 0 where there is none, None where they are computed."""
    value = node.inputs[position] if position < len(node.inputs) else None
    if value is None:
        return np.zeros(1, np.int64)
    return None if value.constant is None else value.constant.array.reshape(-1).astype(np.int64)


class Product(Step):
    """Each channel of the result sums all channels of x."""

    def __init__(self, node: Node, axis: int, x: Value) -> None:
        super().__init__(node)
        self.axis, self.x, self.weights = axis, x, _Weights(node)
        self.needed = self.weights.nonzero  # by each channel, of x
        self.columns = np.zeros(0, np.int64)  # channels of x that never vary
        self.added = np.zeros((len(self.needed), 0), np.int64)  # by these

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        x = known.get(self.x)
        if x is not None:
            self.columns = np.flatnonzero(x.where)
            one, self.added = self.weights.added(self.columns, x, self.columns[None])
            self.needed = self.needed.copy()
            self.needed[:, self.columns] &= ~one
        return Known(~self.needed.any(1), self.added.sum(1).astype(np.int32))

    def grow(self, keep: Masks) -> None:
        if self.x in keep:
            keep[self.x] |= self.needed[keep[self.node.output]].any(0)

    def left_out(self, keep: Masks) -> np.ndarray:
        """What channels that are left out have added to the sums of each channel that is kept."""
        out = keep[self.node.output]
        if self.x not in keep:
            return np.zeros(len(out), np.int32)
        total = self.added[:, ~keep[self.x][self.columns]].sum(1)
        return np.where(out, total, 0).astype(np.int32)

    def cut(self, cutting: Cutting, keep: Masks) -> None:
        outs, ins = self.weights.axes
        out = keep[self.node.output]
        array = np.compress(out, self.weights.array, outs)
        cutting.put(self.node, 1, np.compress(keep[self.x], array, ins) if self.x in keep else array)
        cut_zeros(self.node, cutting, out)


class Groups(Coupled):
    """A convolution in groups: one that is kept reads all of its channels, and makes all."""

    def __init__(self, node: Node, x: Value) -> None:
        super().__init__(node, 1, [x])
        self.weights = _Weights(node)

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        x, weights = known.get(self.operands[0]), self.weights
        if x is None:
            return Known(~weights.nonzero.any(1), np.zeros(len(weights.rows), np.int32))
        outs, each = weights.nonzero.shape
        group = vars(self.node.op)["group"]
        firsts = np.arange(outs) // (outs // group) * each
        one, added = weights.added(slice(None), x, firsts[:, None] + np.arange(each))
        return Known(~(weights.nonzero & ~one).any(1), added.sum(1).astype(np.int32))

    def grow(self, keep: Masks) -> None:
        x, out = keep[self.operands[0]], keep[self.node.output]
        group = vars(self.node.op)["group"]
        both = x.reshape(group, -1).any(1) | out.reshape(group, -1).any(1)
        x |= np.repeat(both, len(x) // group)
        out |= np.repeat(both, len(out) // group)

    def cut(self, cutting: Cutting, keep: Masks) -> None:
        out, each = keep[self.node.output], self.weights.nonzero.shape[1]
        cutting.put(self.node, 1, np.compress(out, self.weights.rows, 0))
        cut_zeros(self.node, cutting, out)
        self.node.op = replace(self.node.op, group=int(keep[self.operands[0]].sum()) // each)


def cut_zeros(node: Node, cutting: Cutting, out: np.ndarray) -> None:
    """Zero points of weights, where there is one for each channel."""
    zeros = node.inputs[3] if len(node.inputs) > 3 else None
    if zeros is not None and zeros.constant is not None and zeros.type.count == len(out) > 1:
        cutting.put(node, 3, np.compress(out, zeros.constant.array, zeros.type.rank - 1))


def sums(node: Node, axes: Axes) -> Step | None:
    """A convolution or product of integers with constant weights, as a step; None for any other node."""
    if not isinstance(node.op, ConvInteger | ConvTransposeInteger | MatMulInteger):
        return None
    x, weights = node.inputs[:2]
    if x is None or weights is None or weights.constant is None or zero_point(node, 3) is None:
        return None
    if isinstance(node.op, MatMulInteger):
        axis = node.output.type.rank - 1
        fits = weights.type.rank == 2 and x.type.rank >= 2 and axes.get(x, axis) == x.type.rank - 1
        return Product(node, axis, x) if fits else None
    if axes.get(x, 1) != 1:
        return None
    if node.op.group == 1:
        return Product(node, 1, x)
    return Groups(node, x) if x in axes and isinstance(node.op, ConvInteger) else None
