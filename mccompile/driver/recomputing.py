"""Which parts of a network are computed in tiles, and in how many, and which bottlenecks become single calls.

Ways lead from cut to cut: in tiles, with or without bottlenecks as single calls (which may be all that a way does), or
as before. For a size of the arena, the shortest path has the fewest
multiply-accumulates of those whose ways need no more than that. What tiles need is what tile_columns expects; other
ways need nothing, until a plan is made that has its peak there. So plans are made one after the other, each of the
smallest path that is known, and the smallest plan is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..base.column_tiles import ColumnTiles
from ..base.records import dataclass
from ..emit.package import Package
from ..fitting import Attempt, Changes
from ..plan.ir import Plan, is_arena, walk

PLANS = 24  # that are made


@dataclass(frozen=True)
class _Segment:
    """From a cut to a later one, by their places."""

    begin: int
    end: int
    bytes: int
    macs: int = 0  # that are computed once more
    column_tiles: ColumnTiles | None = None


@dataclass(frozen=True)
class _Path:
    macs: int = 0
    column_tiles: tuple[ColumnTiles, ...] = ()

    def along(self, way: _Segment) -> _Path:
        return _Path(
            self.macs + way.macs, (*self.column_tiles, way.column_tiles) if way.column_tiles else self.column_tiles
        )

    @property
    def order(self) -> tuple[int, int]:
        return self.macs, len(self.column_tiles)


def in_column_tiles(attempt: Attempt, most: float) -> Attempt:
    """Attempts with the tiles that lead to the smallest arena with at most `most` times the multiply-accumulates."""

    def best(changes: Changes) -> Package:
        plain = found = attempt({**changes, "recompute": most})
        paths = _Paths(plain, int(plain.macs * (most - 1)))
        for _ in range(PLANS):
            tiles = paths.smallest(found.plan.arena_bytes)
            if tiles is None:
                break
            made = attempt({**changes, "recompute": most, "column_tiles": tiles})
            paths.learn(made, tiles)
            if made.plan.arena_bytes < found.plan.arena_bytes and made.macs <= plain.macs * most:
                found = made
        return found

    return best


class _Paths:
    """What ways need, as far as it is known."""

    def __init__(self, plain: Package, most: int) -> None:
        self.places = {cut.name: place for place, cut in enumerate(plain.cuts)}
        self.made_at = {node: place for place, cut in enumerate(plain.cuts) for node in cut.makes}
        self.most = most
        self.tried: set[tuple[ColumnTiles, ...]] = {()}
        self.steps = dict.fromkeys(range(1, len(plain.cuts)), 0)  # from the cut before
        self.column_tiles = {cost.column_tiles: cost.bytes for cost in plain.column_tiles}
        self.macs = {cost.column_tiles: cost.macs for cost in plain.column_tiles}
        self.learn(plain, ())

    def learn(self, made: Package, tiles: Iterable[ColumnTiles]) -> None:
        """What is needed where a plan has its peak. What runs by rows makes use of all the room that there is, and of
        tiles is known what to expect: where others need more than that, it is they who are at the peak."""
        chosen = tuple(tiles)
        outside, inside = dict[int, int](), dict[ColumnTiles, int]()
        for item, size in zip(made.plan.items, _held(made.plan), strict=True):
            nodes = {name for step in walk((item,)) for name in step.provenance}
            for place in {self.made_at.get(node, 0) for node in nodes} - {0}:
                around = _around(place, chosen, self.places)
                if around is None:
                    outside[place] = max(size, outside.get(place, 0))
                else:
                    inside[around] = max(size, inside.get(around, 0))
        most = max(outside.values(), default=0)
        if most > max((self.column_tiles[each] for each in chosen), default=0):
            for place in (place for place, size in outside.items() if size == most):
                self.steps[place] = max(most, self.steps[place])
            return
        for each in (each for each, size in inside.items() if size == max(inside.values())):
            self.column_tiles[each] = max(inside[each], self.column_tiles[each])

    def smallest(self, below: int) -> tuple[ColumnTiles, ...] | None:
        """The path that needs least, of those that need less than `below` and were not tried."""
        ways = [_Segment(place - 1, place, size) for place, size in self.steps.items()]
        ways += [
            _Segment(self.places[tiles.first], self.places[tiles.last], size, self.macs[tiles], tiles)
            for tiles, size in self.column_tiles.items()
        ]
        for size in sorted({way.bytes for way in ways if way.bytes < below}):
            path = _shortest([way for way in ways if way.bytes <= size], len(self.places) - 1)
            if path is not None and path.macs <= self.most and path.column_tiles not in self.tried:
                self.tried.add(path.column_tiles)
                return path.column_tiles
        return None


def _around(place: int, tiles: Iterable[ColumnTiles], places: Mapping[str, int]) -> ColumnTiles | None:
    return next((each for each in tiles if places[each.first] < place <= places[each.last]), None)


def _shortest(ways: Iterable[_Segment], end: int) -> _Path | None:
    """From the first cut to the last one."""
    best = {0: _Path()}
    for way in sorted(ways, key=lambda way: way.begin):
        if way.begin in best:
            path = best[way.begin].along(way)
            best[way.end] = min(best.get(way.end, path), path, key=lambda path: path.order)
    return best.get(end)


def _held(plan: Plan) -> list[int]:
    """Bytes of the arena that are in use at each item. Buffers may overlap."""
    found = []
    lives = sorted((life for life in plan.lives if is_arena(life.base)), key=lambda life: (life.low, life.high))
    for moment in range(1, len(plan.items) + 1):  # a run begins at 0
        total = reached = 0
        for life in lives:
            if life.at(moment):
                total += max(0, life.high - max(life.low, reached))
                reached = max(reached, life.high)
        found.append(total)
    return found
