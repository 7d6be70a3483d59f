"""Tables of jumps: where `mov pc`, `tbb` and `tbh` may go on. The comparison before them says how many entries there
are, the program's image what these are. It is assumed that nothing else leads to the jump, as compilers have it.

Invariant: what is not exactly one of these forms has no table, and none is read in part.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..disassembly import Instruction
from .memory import Image

_GUARD = r"cmp (?P<index>r\d+), #(?P<last>\d+);(bhi \S+ <\S+>|bls (?P<over>\w+) <\S+>;b \S+ <\S+>);"
_WORDS = re.compile(
    rf"{_GUARD}ldr (?P<base>r\d), \[pc, #(?P<literal>\d+)\];"
    r"lsls (?P=index), (?P=index), #2;ldr (?P<goal>r\d), \[(?P=base), (?P=index)\];mov pc, (?P=goal);$"
)
_OFFSETS = re.compile(rf"{_GUARD}tb(?P<size>[bh]) \[pc, (?P=index)\b[^;]*;$")
_MOST = 6  # instructions of such a form


def jumps(code: Sequence[Instruction], number: int, image: Image) -> tuple[int, ...]:
    """Where an instruction of a function may go on by a table; none: it has none."""
    each = code[number]
    after = code[number + 1].at if number + 1 < len(code) else 0
    if not (each.name.startswith("tb") or (each.name.startswith("mov") and each.operands.startswith("pc,"))):
        return ()
    for first in range(max(0, number + 1 - _MOST - 1), number):
        form = code[first : number + 1]
        text = "".join(f"{one.name.split('.')[0]} {one.operands};" for one in form)
        if (found := _WORDS.match(text) or _OFFSETS.match(text)) is None:
            continue
        guarded = form[3 if found["over"] else 2].at
        if found["over"] and int(found["over"], 16) != guarded:
            return ()
        return _entries(found, guarded, after, image)
    return ()


def _entries(found: re.Match[str], guarded: int, after: int, image: Image) -> tuple[int, ...]:
    every = range(int(found["last"]) + 1)
    if found.re is _WORDS:
        table = image.read((guarded + 4 & ~3) + int(found["literal"]), 4)
        goals = [None if table is None else image.read(table + 4 * n, 4) for n in every]
        return () if None in goals else tuple(sorted({goal & ~1 for goal in goals if goal is not None}))
    size = 1 if found["size"] == "b" else 2
    steps = [image.read(after + size * n, size) for n in every]
    return () if None in steps else tuple(sorted({after + 2 * step for step in steps if step is not None}))
