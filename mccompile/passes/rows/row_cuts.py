"""Cuts a program's line into chains of calls that run row by row and calls that run as a whole."""

from __future__ import annotations

from collections.abc import Mapping

from .row_chains import LONGEST

Piece = tuple[int, int]  # the first and the last call


def row_cut(
    count: int, costs: Mapping[Piece, int], joined: Mapping[Piece, int], limit: int | None
) -> tuple[int, list[Piece]]:
    """The cut with the least peak; with a limit, the one below it of which `joined` adds up to the least: the calls in
    chains. A single call that is a chain by itself counts there as much as the longest one: of calls that are done
    again, one behind the other, results that lie before operands make large rigid blocks."""
    best: list[tuple[int, int] | None] = [(0, 0), *[None] * count]
    came = [0] * (count + 1)
    for last in range(count):
        for first in range(last, max(-1, last - LONGEST), -1):
            cost, before = costs.get((first, last)), best[first]
            if cost is None or before is None or (limit is not None and cost > limit):
                continue
            more = joined[first, last]
            if limit is None:
                value = max(before[0], cost), before[1] + more
            else:
                value = before[0] + more, max(before[1], cost)
            known = best[last + 1]
            if known is None or value < known:
                best[last + 1] = value
                came[last + 1] = first
    cuts = []
    at = count
    while at:
        cuts.append((came[at], at - 1))
        at = came[at]
    final = best[count]
    assert final is not None
    return final[0], cuts[::-1]
