"""Constants that nothing reads are not declared, so templates declare what only some of their lines need.

Invariant: a declaration goes only where no line behind it in its block reads the name, so what stays means the same.
"""

from __future__ import annotations

import re

from .layout import Block
from .tokens import names_read

_DECLARED = re.compile(r"const [\w *]*?(\w+) = ([^{=]|[=<>!]=)*;")  # one alone


def without_dead_constants(block: Block) -> set[str]:
    """Changes what is in a block; the names that it reads."""
    read: set[str] = set()
    kept: list[Block | str] = []
    for item in reversed(block.inside):
        if isinstance(item, Block):
            read |= without_dead_constants(item)
            read.update(names_read(item.head), names_read(item.tail))
        elif (declared := _DECLARED.fullmatch(item)) and declared[1] not in read:
            continue
        else:
            read.update(names_read(item))
        kept.append(item)
    block.inside = kept[::-1]
    return read
