"""gemm in numpy: einsum in the widest type, rounded once."""

from __future__ import annotations

import numpy as np

from mccompile.kinds.gemm import Gemm
from tests.kernels.wide import Wide


def oracle(kind: Gemm, a: np.ndarray, b: np.ndarray, *rest: np.ndarray) -> np.ndarray:
    wide = Wide(kind, rest)
    a_wide = wide.factor(a, kind.a_zero, slice(None), None)
    b_wide = wide.factor(b, kind.b_zero, None, slice(None))
    return wide.result(np.einsum("...mk,...kn->...mn", a_wide, b_wide))
