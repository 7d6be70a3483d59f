"""n-grams counted in Python."""

from __future__ import annotations

from collections import Counter

import numpy as np

from mccompile.kinds.ngram import Ngram


def oracle(kind: Ngram, x: np.ndarray, grams: np.ndarray, places: np.ndarray, weights: np.ndarray) -> np.ndarray:
    result = np.zeros((len(x), kind.columns), np.float32)
    for row, numbers in enumerate(x.tolist()):
        number = start = 0
        for length, many in kind.lengths:
            found: Counter[tuple[int | str, ...]] = Counter()
            for step in range(1, (kind.skips + 1 if length > 1 else 1) + 1):
                span = (length - 1) * step + 1
                found.update(tuple(numbers[at : at + span : step]) for at in range(len(numbers) - span + 1))
            for _ in range(many):
                count = found[tuple(grams[start : start + length].tolist())]
                if kind.once and count:
                    result[row, places[number]] = weights[number]
                elif count:
                    result[row, places[number]] += weights[number] * count
                number, start = number + 1, start + length
    return result
