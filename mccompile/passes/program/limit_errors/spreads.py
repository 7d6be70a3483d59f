"""The estimated distributions of all buffers, and how much of an error a call passes on: the data of the rules
(rules.py).

Errors are given by their squares, and those of a tensor lie on its channels as the squares of its elements do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from ....base.dims import upper
from ....base.records import dataclass
from ....expr.ir import Expr
from ....kinds.api import WithEpilogue
from ....program.ir import Buffer, Call, View
from .spread import ALIKE, Spread, axis_of_constant, centred, of_constant, through

LEAST = 1e-30


@dataclass(eq=False)
class Step:
    """A call, and what it does to errors."""

    call: Call
    products: float = 0.0  # the squares of all terms of a sum, added up, as far as the epilogue keeps them
    kept: dict[Buffer, float] = field(default_factory=dict)  # of the square of an error, by operand
    arrives: float = 0.0  # at an output: of the square of an error, over those of the output's elements

    def keep(self, view: View, kept: float) -> None:
        if view.buffer.constant is None and view.buffer.dtype.is_float:
            self.kept[view.buffer] = self.kept.get(view.buffer, 0.0) + kept


@dataclass(frozen=True)
class CallResult:
    """The result of a call: quantiles at the positions along an axis."""

    axis: int
    quantiles: np.ndarray


class Spreads:
    """What is known of the elements of buffers."""

    def __init__(self, outputs: frozenset[Buffer]) -> None:
        self.outputs = outputs
        self.found: dict[Buffer, Spread] = {}

    def record(self, call: Call, made: CallResult) -> None:
        for view in call.outs if len(made.quantiles) else ():
            step = upper(view.strides[made.axis]) if len(made.quantiles) > 1 else 1
            self.found[view.buffer] = Spread(made.quantiles, max(step, 1))

    def of(self, view: View) -> Spread:
        return self.found.get(view.buffer, ALIKE)

    def square(self, view: View) -> float:
        return max(self.of(view).square, LEAST)

    def operand(self, view: View, axis: int) -> np.ndarray:
        return of_constant(view, axis) if view.buffer.constant is not None else self.of(view).along(view, axis)

    def axis(self, views: Sequence[View]) -> int:
        """The one along which channels lie."""
        for view in views:
            axes = range(view.type.rank) if view.buffer.constant is None else ()
            found = [axis for axis in axes if self.of(view).channels(view, axis) is not None]
            if found:
                return found[-1]
        alone = [axis_of_constant(view) for view in views if view.buffer.constant is not None]
        return next((axis for axis in alone if axis is not None), -1)

    def keep(self, step: Step, view: View, axis: int, kept: np.ndarray) -> None:
        """What is kept of the square of an error of each channel."""
        if view.buffer.constant is None:
            squares = np.mean(self.operand(view, axis) ** 2, -1)
            step.keep(view, float(np.mean(kept * squares)) / max(float(squares.mean()), LEAST))

    def expression(
        self, step: Step, expr: Expr, operands: Sequence[np.ndarray], views: Sequence[View | None]
    ) -> tuple[np.ndarray, list[np.ndarray]]:
        if step.call.outs[0].buffer not in self.outputs:
            biases = {n for n, view in enumerate(views) if view is not None and view.buffer.constant is not None}
            operands = centred(expr, operands, biases)
        return through(expr, operands)

    def finish(self, step: Step, axis: int, sums: np.ndarray) -> tuple[CallResult, np.ndarray]:
        """What the epilogue makes of sums, and what it keeps of their errors."""
        call = step.call
        assert isinstance(call.kind, WithEpilogue)
        if call.kind.epilogue is None:
            return CallResult(axis, sums), np.ones(len(sums))
        extras = call.ins[call.kind.fixed :]
        operands = [sums, *(self.operand(view, axis) for view in extras)]
        results, kept = self.expression(step, call.kind.epilogue, operands, [None, *extras])
        for view, each in zip(extras, kept[1:], strict=True):
            self.keep(step, view, axis, each)
        return CallResult(axis, results), kept[0]
