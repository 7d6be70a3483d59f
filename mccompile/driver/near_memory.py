"""Which parts of a network are computed in tiles because rows of its tensors do not fit the near one of two memories.

Where nothing fits, ways lead from cut to cut: by rows as before, or in tiles. Of ways that are expected to fit, the
path is taken that copies and computes again least. Where a plan fails, the way that failed is left out from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..base.column_tiles import ColumnTiles
from ..emit.package import Package
from ..fitting import Attempt, Changes
from ..passes.api import TilesCost
from ..passes.program.bring_tensors import NothingFits

PLANS = 24  # that are made
PER_BYTE = 2  # multiply-accumulates that take as long as copying a byte


def in_near_memory(attempt: Attempt) -> Attempt:
    """Attempts with tiles where nothing fits without."""

    def best(changes: Changes) -> Package:
        try:
            return attempt(changes)
        except NothingFits as failed:
            paths = _Paths(failed)
            for tiles in paths:
                try:
                    return attempt({**changes, "recompute": 1.0, "column_tiles": tiles})
                except NothingFits as again:
                    paths.learn(again, tiles)
            raise

    return best


class _Paths:
    """Those that are expected to fit, the best first."""

    def __init__(self, failed: NothingFits) -> None:
        self.places = {cut.name: place for place, cut in enumerate(failed.cuts)}
        self.made_at = {node: place for place, cut in enumerate(failed.cuts) for node in cut.makes}
        self.ways = sorted(failed.column_tiles, key=lambda way: self.places[way.column_tiles.first])
        self.learn(failed, ())

    def __iter__(self) -> Iterator[tuple[ColumnTiles, ...]]:
        tried: set[tuple[ColumnTiles, ...]] = {()}
        for _ in range(PLANS):
            found = self._shortest()
            if found in tried:
                return
            tried.add(found)
            yield found

    def learn(self, failed: NothingFits, chosen: Iterable[ColumnTiles]) -> None:
        """The tiles around a step that does not fit do not; where there are none, no way by rows beyond it does."""
        at = max((self.made_at.get(node, 0) for node in failed.nodes), default=0)
        around = next((each for each in chosen if self._covers(each, at)), None)
        self.ways = [
            way
            for way in self.ways
            if (
                way.column_tiles != around
                if around
                else way.column_tiles.count > 1 or not self._covers(way.column_tiles, at)
            )
        ]

    def _covers(self, tiles: ColumnTiles, place: int) -> bool:
        return self.places[tiles.first] < place <= self.places[tiles.last]

    def _shortest(self) -> tuple[ColumnTiles, ...]:
        """From the first cut to the last one."""
        best: dict[int, tuple[int, int, tuple[ColumnTiles, ...]]] = {0: (0, 0, ())}
        for way in self.ways:
            begin, end = self.places[way.column_tiles.first], self.places[way.column_tiles.last]
            if begin not in best:
                continue
            cost, count, path = best[begin]
            more = (way.column_tiles,) if way.column_tiles.count > 1 else ()
            found = cost + _cost(way), count + len(more), (*path, *more)
            best[end] = min(best.get(end, found), found, key=lambda each: each[:2])
        return best.get(len(self.places) - 1, (0, 0, ()))[2]


def _cost(way: TilesCost) -> int:
    return PER_BYTE * way.copied + way.macs
