"""Simulates a chain, with numbers only: which calls request rows of which others, and what follows from that.

Calls are counted within a chain, which runs as its last call asks for rows. Who makes rows when follows from windows
and heights alone, so chains that are alike are played once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from ...base.records import dataclass


class Window(NamedTuple):
    """Rows of an operand behind a row of the result: (y * stride - pad) / parts, rounded down, and `size` of them."""

    operand: int
    stride: int = 1
    pad: int = 0
    size: int = 1
    parts: int = 1

    def low(self, row: int) -> int:
        return max(0, (row * self.stride - self.pad) // self.parts)

    def end(self, end: int, height: int) -> int:
        """How many rows the operand needs before the result has `end`."""
        return max(0, min(height, ((end - 1) * self.stride - self.pad) // self.parts + self.size))

    def of(self, rows: int) -> Window:
        """The same where that many rows of the operand are made at a time, as one."""
        size = -(-(self.size - 1) // rows) + 1
        return self._replace(parts=self.parts * rows, size=size) if rows > 1 else self

    def ahead(self, rows: int) -> Window:
        """The same where so many rows more of the operand are asked for."""
        return self._replace(size=self.size + rows)

    @property
    def pull(self) -> tuple[int, int, int]:
        return self.stride, self.size * self.parts - self.pad - self.stride, self.parts


Feeds = list[tuple[int, Window]]  # calls of the chain that a call reads from


@dataclass(frozen=True)
class Run:
    """What playing a chain tells: lines of each result that are in use at most; of each operand from outside whether
    the last result may be written over it, and how far before it that may begin."""

    done: bool
    steps: int
    lines: tuple[int, ...] = ()
    over: tuple[bool, ...] = ()
    before: tuple[int, ...] = ()


Wired = tuple[tuple[tuple[int, Window], ...], ...]


@lru_cache(maxsize=1 << 14)  # layers of a network are alike, and so are trials
def played(
    feeds: Wired,
    tree: Wired,
    heights: tuple[int, ...],
    outside: tuple[tuple[tuple[tuple[int, Window], ...], int], ...],
    made_row: int,
    step: tuple[int, ...],
    limit: int,
) -> Run:
    """`outside`: of each operand from outside its users and the bytes of its rows. `step`: rows that each
    makes at a time."""
    consumers, last = consumers_of(feeds), len(feeds) - 1
    over = [any(number == last for number, _ in users) for users, _ in outside]
    before = [0] * len(outside)
    made = [0] * len(feeds)
    lines = [0] * len(feeds)
    steps = 0

    def pull(number: int, wanted: int) -> bool:
        nonlocal steps
        while made[number] < wanted:
            end = min(made[number] + step[number], heights[number])
            steps += 1
            if steps > limit:
                return False
            for source, window in tree[number]:
                if not pull(source, window.end(end, heights[source])):
                    return False
            for source, window in feeds[number]:
                if made[source] < window.end(end, heights[source]):
                    return False
            using = [w.low(made[n]) for n, w in consumers[number] if made[n] < heights[n]]
            lines[number] = max(lines[number], end - min(using, default=made[number]))
            if number == last:
                for index, (users, row) in enumerate(outside):
                    for user, window in users:
                        ahead = made[user] >= heights[user] or window.low(made[user]) >= end
                        over[index] &= user == number or ahead
                    lows = [w.low(made[user]) for user, w in users if made[user] < heights[user]]
                    if lows:
                        before[index] = max(before[index], end * made_row - min(lows) * row)
            made[number] = end
        return True

    done = pull(last, heights[-1])
    return Run(done, steps, tuple(lines), tuple(over), tuple(before))


def consumers_of(feeds: Sequence[Sequence[tuple[int, Window]]]) -> list[Feeds]:
    found: list[Feeds] = [[] for _ in feeds]
    for number, own in enumerate(feeds):
        for source, window in own:
            found[source].append((number, window))
    return found


@lru_cache(maxsize=1 << 14)
def trees_of(feeds: Wired, heights: tuple[int, ...]) -> tuple[Wired, ...]:
    """The ways in which rows may be pulled; none if a call is not read."""
    own = [list(each) for each in feeds]
    tree = tree_of(own, heights)
    if tree is None:
        return ()
    found = [tree, other] if (other := eager(own, tree, heights)) != tree else [tree]
    return tuple(tuple(map(tuple, one)) for one in found)


def tree_of(feeds: list[Feeds], heights: Sequence[int]) -> list[Feeds] | None:
    """Who pulls whom: each call but the last once, by the reader that needs the most rows of it when half of the result
    is made (of several the one that runs first). None if a call is not read."""
    count = len(feeds)
    needs = [0] * count
    needs[-1] = max(1, heights[-1] // 2)
    puller: list[tuple[int, Window] | None] = [None] * count
    for number in range(count - 1, -1, -1):
        for source, window in feeds[number]:
            wanted = window.end(needs[number], heights[source])
            if puller[source] is None or wanted >= needs[source]:
                needs[source], puller[source] = wanted, (number, window)
    tree: list[Feeds] = [[] for _ in feeds]
    below: list[set[int]] = [{number} for number in range(count)]
    for number in range(count - 1):
        found = puller[number]
        if found is None:
            return None
        tree[found[0]].append((number, found[1]))
        below[found[0]] |= below[number]
    return [_in_order(own, feeds, below) for own in tree]


def _in_order(own: Feeds, feeds: list[Feeds], below: list[set[int]]) -> Feeds:
    """What one call pulls, such that rows that one branch makes and another one reads are made first."""
    left = sorted(own, key=lambda feed: -len(below[feed[0]]))
    ordered: Feeds = []
    while left:

        def waits(number: int) -> bool:
            read = {source for inner in below[number] for source, _ in feeds[inner]}
            return any(other != number and read & below[other] for other, _ in left)

        chosen = next((feed for feed in left if not waits(feed[0])), left[0])
        ordered.append(chosen)
        left.remove(chosen)
    return ordered


def eager(feeds: list[Feeds], tree: list[Feeds], heights: Sequence[int]) -> list[Feeds]:
    """The same tree, but a shortcut that makes as many rows as another reader of its source runs beside that one, and
    not only when its result is wanted: its source, mostly of more or longer rows, need not wait for it."""
    moved = [list(own) for own in tree]
    for number, own in enumerate(tree):
        for source, window in own:
            if window.pull != (1, 0, 1) or not feeds[source]:
                continue
            behind, reach = feeds[source][0]
            for other in range(len(feeds)):
                beside = [w for s, w in feeds[other] if s == behind]
                if other in (source, number) or not beside or heights[other] != heights[source]:
                    continue
                if (beside[0].stride, beside[0].parts) == (reach.stride, reach.parts):
                    moved[number].remove((source, window))
                    moved[other].append((source, window))
                    break
    return moved
