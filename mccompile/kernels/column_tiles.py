"""How columns of a packed matrix lie, for others that read them: they are the rows of a table that is turned.

Invariant: only order, padding and the highest bit of integers differ from the matrix as the model stores it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..base.records import dataclass


@dataclass(frozen=True)
class ColumnTiles:
    """Columns from `begin` up to `end` in tiles; of the columns of a tile lie runs side by side: one each, then the
    next ones along the sum."""

    begin: int
    end: int
    tile: int  # columns
    depth: int  # elements of a column, with padding
    run: tuple[tuple[int, int], ...] = ()  # sizes and strides along the sum, within a run; none: runs of one element

    @property
    def length(self) -> int:
        return prod(size for size, _ in self.run)

    def shape(self, depth: int) -> tuple[int, ...]:
        """Tiles, columns of a tile, and the sum without its padding as runs and what is in them."""
        return (-(-(self.end - self.begin) // self.tile), self.tile, *self.sums(depth))

    def sums(self, depth: int) -> tuple[int, ...]:
        return (depth // self.length, *(size for size, _ in self.run))

    @property
    def strides(self) -> tuple[int, ...]:
        within = (stride for _, stride in self.run)
        return (self.depth * self.tile, self.length, self.length * self.tile, *within)

    @property
    def offset(self) -> int:
        return self.begin * self.depth


def column_tiles(
    parts: Sequence[tuple[int, int, int, int]], lanes: int, depth: int, run: tuple[tuple[int, int], ...] = ()
) -> list[ColumnTiles]:
    """Of groups of vectors (codegen/vector/vector_groups.py)."""
    return [ColumnTiles(begin, end, vectors * lanes, depth, run) for begin, end, vectors, _ in parts]
