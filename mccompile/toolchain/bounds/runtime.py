"""Functions of the run-time whose loops end by data, but take a turn for each bit of a result at most.

The first word on the stack of __udivmoddi4 says where it stores a remainder of 8 bytes; they write nothing else.
"""

from __future__ import annotations

from .blocks import Code

TURNS = {
    "__udivmoddi4": 64,
    "__aeabi_fdiv": 27,  # of soft floats: 24 bits, and those it rounds by
    "__aeabi_fmul": 23,  # on cores whose library has it in assembly: subnormal factors are shifted bit by bit
}
STORING = ("__udivmoddi4",)
OWN = ("__errno",)  # whose result points to what no program has


def most_visits(code: Code, entry: int) -> dict[int, int]:
    """How often each block is entered at most, of a function that is named above and has loops; else nothing."""
    turns = TURNS.get(code.function(entry), 1)
    ways = code.ways(entry) if turns > 1 else {}
    found = {}
    for at in ways:
        reached: set[int] = set()
        left = [*ways[at]]
        while left:
            each = left.pop()
            if each not in reached:
                reached.add(each)
                left += ways[each]
        found[at] = turns if at in reached else 1
    return found if turns in found.values() else {}
