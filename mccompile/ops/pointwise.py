"""An elementwise formula as an operator: gradients and steps of optimizers are written with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.records import dataclass
from ..base.tensor import TensorType
from ..base.text import Reader
from ..expr.evaluate import evaluate
from ..expr.ir import Expr, substitute
from ..expr.text import read
from .api import OWN
from .rules.elementwise import Elementwise


@dataclass(frozen=True)
class Pointwise(Elementwise):
    """`formula` is an expression over the operands, as it prints itself."""

    domain = OWN
    versions = (1,)
    formula: str

    def check(self, types: Sequence[TensorType]) -> None:
        """The expression says itself what it takes."""

    def element(self, args: Sequence[Expr]) -> Expr:
        return substitute(read(Reader(self.formula)), args)

    def evaluate(self, arrays: Sequence[np.ndarray | None]) -> np.ndarray | None:
        given = [array for array in arrays if array is not None]
        shape = np.broadcast_shapes(*(array.shape for array in given))
        return evaluate(read(Reader(self.formula)), given, shape)
