"""What a resize means: one matrix per axis, in float64."""

from __future__ import annotations

import numpy as np

from mccompile.expr.evaluate import evaluate
from mccompile.kinds.resize import Resize


def oracle(kind: Resize, x: np.ndarray, *operands: np.ndarray) -> np.ndarray:
    result = x.astype(np.float64)
    for number, axis in enumerate(kind.axes):
        positions, weights = operands[2 * number : 2 * number + 2]
        matrix = np.zeros((len(positions), x.shape[axis]))
        for row, (places, factors) in enumerate(zip(positions, weights, strict=True)):
            for place, factor in zip(places, factors, strict=True):
                matrix[row, place] += factor
        result = np.moveaxis(np.tensordot(matrix, result, (1, axis)), 0, axis)
    result = result.astype(kind.accumulator.numpy)
    if kind.epilogue is None:
        return result
    return evaluate(kind.epilogue, [result, *operands[2 * len(kind.axes) :]], result.shape)
