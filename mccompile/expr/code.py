"""C of an expression, which knows whether it needs brackets where an operator stands beside it."""

from __future__ import annotations

from ..base.records import dataclass


@dataclass(frozen=True)
class Code:
    """`loose`: operators hold it together, so another one beside it could part it."""

    text: str
    loose: bool = False

    @property
    def operand(self) -> str:
        return f"({self.text})" if self.loose else self.text
