"""Products in numpy, in the widest type, which oracles round once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.api import WithEpilogue
from mccompile.kinds.conv import Conv
from mccompile.kinds.gemm import Gemm


class Wide:
    """Operands of a product: factors, zero points where there are any, those of the epilogue."""

    def __init__(self, kind: Conv | Gemm, rest: Sequence[np.ndarray]) -> None:
        self.kind: WithEpilogue = kind
        self.numpy = kind.accumulator.numpy
        self.type: type[np.generic] = np.float64 if kind.accumulator.is_float else np.int64
        self.zeros, self.extras = list(rest[: kind.fixed - 2]), rest[kind.fixed - 2 :]

    def factor(self, array: np.ndarray, zero: bool, *shape: int | slice | None) -> np.ndarray:
        """Less its zero point, if it has one: the next one, brought to a shape by indexing."""
        wide: np.ndarray = array.astype(self.type)
        return wide - self.zeros.pop(0).astype(self.type)[(..., *shape)] if zero else wide

    def result(self, sums: np.ndarray) -> np.ndarray:
        element, epilogue = sums.astype(self.numpy), self.kind.epilogue
        return element if epilogue is None else evaluate(epilogue, [element, *self.extras], element.shape)
