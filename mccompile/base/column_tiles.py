"""Parts of a network that are computed in tiles, one after the other, or with bottlenecks as single calls."""

from __future__ import annotations

from .records import dataclass


@dataclass(frozen=True)
class ColumnTiles:
    """What makes the value `last` out of `first` is computed in so many tiles of columns; of channels, where these are
    pooled. `rows`: its bottlenecks are calls that make so many rows at a time, or 0."""

    first: str
    last: str
    count: int
    rows: int = 0

    def __str__(self) -> str:
        bottlenecks = f", bottlenecks {self.rows} rows at a time" if self.rows else ""
        return f"{self.first} to {self.last} in {self.count}{bottlenecks}"
