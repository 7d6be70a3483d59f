"""How tensors of a window network move in time, and the rules that say so for each operator.

A tensor moves along an axis if the window that ends `stride` frames later has the same elements one place further to
the front: all but the newest ones are known from the run before. Elements are counted as in the window, from 0; the
sequence goes on before and after it.

Invariant: elements from `low` on and before `high` do not depend on where the window begins or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from fractions import Fraction

import numpy as np

from ...base.records import dataclass
from ...base.tensor import TensorType
from ...graph.ir import Node, Op, Site

Span = tuple[int, int]  # the first element and the one past the last
Frames = int | Fraction


@dataclass(frozen=True)
class Motion:
    axis: int
    length: int  # elements in the window
    stride: Frames  # from one element to the next; less than one where a frame makes several
    low: int
    high: int
    oldest: Frames  # element 0 depends on no earlier one of the window; negative: before it
    start: Node | None = None  # what ties the elements before `low` to the start of the window
    end: Node | None = None  # and those from `high` on to its end

    def moved(self, shift: int, length: int) -> Motion:
        """The motion of a tensor whose element i is element i + shift of this one."""
        low, high, oldest = self.low - shift, self.high - shift, self.oldest + shift * self.stride
        return replace(self, length=length, low=low, high=high, oldest=oldest)

    def padded(self, node: Node, before: int, after: int) -> Motion:
        """The same where what stands around the window is something else than the past and the future."""
        if before > 0:
            self = replace(self, low=max(self.low, 0), start=node)
        if after > 0:
            self = replace(self, high=min(self.high, self.length), end=node)
        return self


@dataclass(frozen=True)
class Step:
    """What becomes of a node in the step network."""

    results: tuple[Motion | None, ...]  # None: what it makes is of the whole window
    reads: Mapping[int, Span]  # the elements that it has to be given of each operand that moves
    op: Op | None = None  # None: as it is
    operands: Mapping[int, np.ndarray] = field(default_factory=dict)  # other contents for constant operands
    shifts: tuple[int, ...] = ()  # there is no node: element i of result k is element i + shifts[k] of
    source: int = 0  # this operand
    carries: Mapping[int, int] = field(default_factory=dict)  # operands that are results of the run before
    saves: bool = False  # it multiplies or compares, and does so for the new elements alone


@dataclass(frozen=True)
class NodeMotion:
    """A node, and how its operands move."""

    node: Node
    site: Site
    motions: tuple[Motion | None, ...]  # of operands; None: it does not move
    hop: int
    warm: bool  # windows are taken to go on at their ends

    def new(self, motion: Motion) -> Span:
        """The elements of a tensor that a push brings."""
        return motion.high - max(int(self.hop // motion.stride), 1), motion.high

    def only(self, position: int) -> Motion | None:
        """How operand `position` moves, where no other one does."""
        moving = [place for place, motion in enumerate(self.motions) if motion is not None]
        return self.motions[position] if moving == [position] else None

    def result(self, position: int = 0) -> TensorType:
        value = self.node.outputs[position]
        assert value is not None
        return value.type

    def length(self, axis: int) -> int:
        """Of the first result in the window."""
        return self.result().static_shape[axis]

    def wants(self, position: int) -> bool:
        return position < len(self.node.outputs) and self.node.outputs[position] is not None

    def carried(self, motion: Motion, position: int = 0, saves: bool = False) -> Step:
        """A node that computes each element of the result from the one at the same place of an operand."""
        return Step((motion,) * len(self.node.outputs), {position: self.new(motion)}, saves=saves)


Rule = Callable[[NodeMotion], Step | None]  # None: it works on the whole window
_RULES: dict[type, Rule] = {}


def moves(*ops: type) -> Callable[[Rule], Rule]:
    """Says that a rule is that of these operators."""

    def told(rule: Rule) -> Rule:
        _RULES.update(dict.fromkeys(ops, rule))
        return rule

    return told


def rule_of(op: Op) -> Rule | None:
    return next((_RULES[cls] for cls in type(op).__mro__ if cls in _RULES), None)
