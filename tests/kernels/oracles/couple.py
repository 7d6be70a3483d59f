"""Probabilities of classes from those of pairs in numpy, in double."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.couple import OFF, ROUNDS, Couple


def oracle(kind: Couple, x: np.ndarray) -> np.ndarray:
    return np.array([_coupled(row, kind.classes) for row in x.astype(np.float64)]).astype(x.dtype)


def _coupled(row: np.ndarray, classes: int) -> np.ndarray:
    likely = np.zeros((classes, classes))
    upper = np.triu_indices(classes, 1)
    likely[upper] = row
    likely.T[upper] = 1 - row
    against = -likely * likely.T
    np.fill_diagonal(against, (likely**2).sum(axis=0))
    found = np.full(classes, 1 / classes)
    for _ in range(ROUNDS):
        pulls = against @ found
        if np.abs(pulls - found @ pulls).max() < OFF / classes:
            break
        for t in range(classes):
            pulls = against @ found
            found[t] += (found @ pulls - pulls[t]) / against[t, t]
            found /= found.sum()
    return found
