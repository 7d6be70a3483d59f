"""What an ensemble of trees means: one row and one tree at a time."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np

from mccompile.kinds.tree_ensemble import MODES, TreeEnsemble

TESTS = (operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne)


def oracle(kind: TreeEnsemble, *arrays: np.ndarray) -> np.ndarray:
    given = dict(zip(kind.names, arrays, strict=True))
    x, weight = given["x"], given["weight"]
    found: list[list[list[float]]] = [[[] for _ in range(int(given["target"].max()) + 1)] for _ in x]
    for row, features in enumerate(x):
        for root in given["roots"]:
            node = int(root)
            while given["feature"][node] >= 0:
                value, mode = features[given["feature"][node]], MODES.index(kind.mode)
                if "modes" in kind.uses:
                    mode = int(given["modes"][node])
                goes = bool(TESTS[mode](value, given["threshold"][node]))
                if "missing" in kind.uses and np.isnan(value):
                    goes = bool(given["missing"][node])
                node = int(given["yes" if goes else "no"][node])
            for leaf in range(given["yes"][node], given["no"][node]):
                found[row][given["target"][leaf]].append(weight[leaf])
    trees = len(given["roots"])
    ways: dict[str, Callable[[list[float]], float]] = {
        "sum": sum,
        "average": lambda w: sum(w) / trees,
        "min": min,
        "max": max,
    }
    combine = ways[kind.combine]
    return np.array([[combine(w) if w else 0 for w in targets] for targets in found], weight.dtype)
