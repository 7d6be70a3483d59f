"""What outputs of integers are beside those of floats, and whether a change of it is more than chance.

With few samples most of the noise may come from one or two of them: what all have together counts, and the mean of each
sample's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.records import dataclass
from .samples import decibels

_EXACT = 150.0  # dB: what floats themselves are exact to
Pairs = Sequence[tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Agreement:
    """In decibels, means over outputs."""

    together: float
    each: np.ndarray  # of the samples

    @staticmethod
    def of(outputs: Sequence[Pairs]) -> Agreement:
        each = [mean_decibels([[pair] for pair in sample]) for sample in zip(*outputs, strict=True)]
        return Agreement(mean_decibels(outputs), np.array(each))

    def gain(self, before: Agreement, errors: float) -> float:
        """What is likely won: less where samples disagree, by some standard errors of their mean."""
        gains = self.each - before.each
        error = float(gains.std() / np.sqrt(max(1, len(gains) - 1)))
        return (self.together - before.together + float(gains.mean())) / 2 - errors * error


def mean_decibels(outputs: Sequence[Pairs]) -> float:
    """Over outputs of floats, or of integers where there are no others."""
    floats = [pairs for pairs in outputs if pairs[0][0].dtype.kind == "f"]
    return float(np.mean([min(decibels(pairs), _EXACT) for pairs in floats or outputs]))
