"""change_case in numpy."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.change_case import ChangeCase


def oracle(kind: ChangeCase, x: np.ndarray, cases: np.ndarray) -> tuple[np.ndarray | None, ...]:
    rows = cases.tolist()
    table = {code: code + change for first, last, step, change in rows for code in range(first, last + 1, step)}
    return np.vectorize(lambda text: text.translate(table), otypes=[object])(x), None, np.array(False)
