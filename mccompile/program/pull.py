"""When a stage of a region of rows has another one make rows."""

from __future__ import annotations

from ..base.records import dataclass


@dataclass(frozen=True)
class Pull:
    """Before a stage makes its rows up to `end`, another stage has to have made `(end * scale + shift) / parts` rows,
    rounded down (or all)."""

    stage: int
    scale: int
    shift: int
    parts: int = 1

    def __str__(self) -> str:
        return f"{self.stage} to {self.scale}, {self.shift}" + (f" parts {self.parts}" if self.parts > 1 else "")

    def wanted(self, end: int) -> int:
        return (end * self.scale + self.shift) // self.parts
