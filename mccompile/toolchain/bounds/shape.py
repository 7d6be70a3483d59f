"""Where the ways of a branch are followed to."""

from __future__ import annotations

from collections.abc import Mapping

from ...base.records import dataclass
from .blocks import Code


@dataclass(frozen=True)
class Shape:
    """Of a function; branches by their addresses."""

    stops: Mapping[int, frozenset[int]]  # where the ways of a branch meet, and heads of loops around it
    leaves: frozenset[int]  # branches that may end a loop

    @classmethod
    def of(cls, code: Code, entry: int) -> Shape:
        ways = code.ways(entry)
        meets = _joins(code, ways)
        loops = [(way, code.block(at).last) for at in ways for way in ways[at] if way <= at]
        stops, leaves = {}, set()
        for at in ways:
            last = code.block(at).last
            around = [(head, end) for head, end in loops if head <= at and last <= end]
            join = meets.get(last)
            stops[last] = frozenset([*(head for head, _ in around), *([] if join is None else [join])])
            if any(not head <= way <= end for head, end in around for way in ways[at]):
                leaves.add(last)
        return cls(stops, frozenset(leaves))


def _joins(code: Code, ways: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """Immediate post-dominators of the blocks of a function, by the address of their last instruction."""
    order = [*ways]
    bit = {at: 1 << number for number, at in enumerate(order)}
    every = (1 << len(order)) - 1
    after = {at: every if ways[at] else bit[at] for at in order}
    changed = True
    while changed:
        changed = False
        for at in reversed(order):
            if ways[at]:
                common = every
                for way in ways[at]:
                    common &= after[way]
                common |= bit[at]
                if common != after[at]:
                    after[at], changed = common, True
    found = {}
    for at in order:
        later = after[at] & ~bit[at]
        for each in order:  # the one that all others of them are behind
            if later & bit[each] and after[each] == later:
                found[code.block(at).last] = each
                break
    return found
