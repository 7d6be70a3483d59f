"""Parts of a network that are computed in strips of columns, one after the other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Strips:
    """What makes the value `last` out of `first` is computed in so many strips."""

    first: str
    last: str
    count: int

    def __str__(self) -> str:
        return f"{self.first} to {self.last} in {self.count}"
