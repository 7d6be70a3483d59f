"""write_numbers by Python and numpy."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.write_numbers import WriteNumbers


def oracle(kind: WriteNumbers, x: np.ndarray) -> tuple[np.ndarray | None, ...]:
    texts = np.empty(x.shape, object)
    texts[:] = [_text(each) for each in x]
    return texts, None, np.array(False)


def _text(number: np.generic) -> str:
    if number.dtype.kind == "f" and 1e-4 <= abs(number) < 1e16:
        return np.format_float_positional(number, trim="0")
    return repr(number.item()) if number.dtype == np.float64 or number.dtype.kind != "f" else str(number)
