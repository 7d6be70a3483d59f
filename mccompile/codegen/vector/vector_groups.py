"""Output channels or columns cut into tiles of vectors.

Invariant: the groups cover each channel once, and only the last one has lanes that do not count.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...kernels.work import Units
from ..tiles import Range
from .vector_tiles import TileSize


@dataclass(frozen=True)
class Groups:
    """Channels cut into tiles: whole ones, then one with the vectors that are left over or whose last is not full."""

    size: TileSize
    channels: int

    def parts(self) -> list[tuple[int, int, int, int]]:
        """Runs of equal tiles: first channel, end, vectors per tile, and lanes that count in the last of them."""
        lanes, vectors = self.size.lanes, self.size.vectors
        wanted = self.padded // lanes
        last = lanes - (self.padded - self.channels)
        rest = wanted % vectors or (vectors if last < lanes else 0)
        whole = (wanted - rest) * lanes
        found = [(0, whole, vectors, lanes)] if whole else []
        return [*found, (whole, self.padded, rest, last)] if rest else found

    @property
    def padded(self) -> int:
        return -(-self.channels // self.size.lanes) * self.size.lanes

    def headers(self, counter: str, units: Units | None = None) -> list[str]:
        """C that opens the loop over the tiles of each part, whose first channel the counter is; with units, over those
        of a piece of the work."""
        found = []
        for begin, end, vectors, _ in self.parts():
            step = vectors * self.size.lanes
            tiles = (end - begin) // step
            if units is not None:
                found.append(units.loop(counter, begin, step, tiles, vectors))
            elif tiles == 1:
                found.append(f"{{\nconst mcc_index {counter} = {begin};")
            else:
                found.append(Range(counter, end, str(begin), step=step).header)
        return found
