"""What is found out about an expression once, for all who ask.

Kernels ask the same of an epilogue for every choice of blocks and every tile. Answers are kept per object, not per
value: -0 and 0 are equal, and not the same C.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar, TypeVarTuple

from .ir import Expr

More = TypeVarTuple("More")
Answer = TypeVar("Answer")
KEPT = 512  # answers


class _Itself:
    """An expression that equals itself alone."""

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.expr is other.expr

    def __hash__(self) -> int:
        return id(self.expr)


def asked_once(function: Callable[[Expr, *More], Answer]) -> Callable[[Expr, *More], Answer]:
    """The function, which is called once for an expression and further arguments. They must be hashable, and nobody
    may change the answer."""

    @lru_cache(KEPT)
    def kept(of: _Itself, more: tuple[*More]) -> Answer:
        return function(of.expr, *more)

    return lambda expr, *more: kept(_Itself(expr), more)
