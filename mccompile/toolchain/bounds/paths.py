"""The dearest way through the blocks of a function whose loops take so many turns at most."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

Ways = Mapping[int, tuple[int, ...]]  # where blocks may go on, by their addresses
Loop = frozenset[int]


def loops_of(ways: Ways) -> dict[int, Loop]:
    """The blocks that lead to one another, by each of them; none: it is in no loop."""
    behind = {at: _behind(ways, at) for at in ways}
    return {at: frozenset(other for other in behind[at] if at in behind[other]) for at in ways}


def dearest(ways: Ways, costs: Mapping[int, int], entry: int, turns: Callable[[Loop], int]) -> int:
    """`turns`: how often each block of a loop is come to at most, whenever the loop is entered."""
    loops = loops_of(ways)

    @cache
    def rest(at: int) -> int:
        own = loops[at] or {at}
        later = max((rest(way) for each in own for way in ways[each] if way not in own), default=0)
        return later + (turns(loops[at]) * _turn(ways, costs, loops[at], entry) if loops[at] else costs[at])

    return rest(entry)


def _turn(ways: Ways, costs: Mapping[int, int], loop: Loop, entry: int) -> int:
    """The dearest way from the head back to it, or all blocks together where there are several heads."""
    heads = {way for at in ways if at not in loop for way in ways[at] if way in loop}
    heads |= {entry} & loop
    backs = [way for at in loop for way in ways[at] if way in loop and way <= at]
    if {*backs} != heads or len(heads) != 1:
        return sum(costs[at] for at in loop)

    @cache
    def rest(at: int) -> int:
        return costs[at] + max((rest(way) for way in ways[at] if way in loop and way > at), default=0)

    return rest(backs[0])


def _behind(ways: Ways, at: int) -> set[int]:
    found: set[int] = set()
    left = [*ways[at]]
    while left:
        each = left.pop()
        if each not in found:
            found.add(each)
            left += ways[each]
    return found
