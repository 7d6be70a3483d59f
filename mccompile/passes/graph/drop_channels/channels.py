"""What operators do with channels: which ones have the same value in every run, and which belong together.

A tensor's channels lie along one axis, from the convolution or product that makes them to those that read them. A
`Step` says three things of a node: what is known of the channels of its result, which channels it keeps its operands
and its result from losing, and how it becomes a node over those that are kept. Invariant: masks only grow, and a step
whose masks do not change any more reads and makes the same channels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ....base.constant import Constant
from ....base.names import new_name
from ....base.records import dataclass
from ....graph.ir import Node, Value, reads

Axes = Mapping[Value, int]
Masks = dict[Value, np.ndarray]


@dataclass(frozen=True)
class Known:
    """Where channels are one number, in every run and everywhere, and these numbers; others stand for nothing."""

    where: np.ndarray
    numbers: np.ndarray


class Cutting:
    """Puts smaller constants where operands were; names are new ones."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def name(self, like: str) -> str:
        return new_name(f"{like}/kept", self.names)

    def constant(self, array: np.ndarray, like: str) -> Value:
        return Value.of_constant(self.name(like), Constant.of(np.array(array, order="C")))

    def put(self, node: Node, position: int, array: np.ndarray) -> None:
        old = node.inputs[position]
        assert old is not None
        new = self.constant(array, old.name)
        del old.uses[node, position]
        node.inputs[position] = new
        new.uses[node, position] = None


class Step:
    """A node that takes all channels of its operands; what it makes has none that could be left out."""

    axis: int | None = None  # of the result's channels

    def __init__(self, node: Node) -> None:
        self.node = node

    def know(self, known: Mapping[Value, Known]) -> Known | None:
        """Of the result."""
        return None

    def grow(self, keep: Masks) -> None:
        for value in reads(self.node):
            if value in keep:
                keep[value][:] = True

    def cut(self, cutting: Cutting, keep: Masks) -> None:
        """Leaves out what is not kept."""


class Coupled(Step):
    """The channels of `operands` are those of the result; each is `times` next to each other there."""

    def __init__(self, node: Node, axis: int, operands: Sequence[Value], times: int = 1) -> None:
        super().__init__(node)
        self.axis, self.operands, self.times = axis, operands, times

    def grow(self, keep: Masks) -> None:
        out = keep[self.node.output]
        for value in self.operands:
            mask = keep[value]
            mask |= out.reshape(-1, self.times).any(1)
            out |= np.repeat(mask, self.times)
