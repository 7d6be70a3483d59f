"""Constants that nothing reads are not declared, so templates declare what only some of their lines need.

Invariant: a declaration goes only where no line behind it in its block reads the name, so what stays means the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .declarations import declared_constants, printed_constants
from .layout import ENDS, Block, without_comment
from .tokens import names_read, printed


def without_dead_constants(block: Block) -> set[str]:
    """Changes what is in a block; the names that it reads."""
    read: set[str] = set()
    kept: list[Block | str] = []
    for item in reversed(list(_statements(block.inside))):
        if isinstance(item, Block):
            read |= without_dead_constants(item)
            read.update(names_read(item.head), names_read(item.tail))
            kept.append(item)
            continue
        whole = " ".join(item)
        kind, constants = declared_constants(whole)
        live = []
        for constant in reversed(constants):
            if constant.name in read:
                live.append(constant)
                read.update(names_read(printed(constant.declarator)))
                read.discard(constant.name)  # lines in front of it that read this name mean another
        if len(live) == len(constants):
            read |= names_read(whole) - {constant.name for constant in constants}
            kept += reversed(item)
        elif live:
            kept.append(printed_constants(kind, live[::-1]))
    block.inside = kept[::-1]
    return read


def _statements(inside: Sequence[Block | str]) -> Iterator[Block | list[str]]:
    """The lines of each, of a comment one by one."""
    lines: list[str] = []
    comment = False
    for item in inside:
        if isinstance(item, str) and not comment and not item.startswith(("/*", "#")):
            lines.append(item)
            if not without_comment(item).endswith(ENDS):
                continue
            yield lines
        else:
            if lines:
                yield lines
            yield item if isinstance(item, Block) else [item]
            comment = isinstance(item, str) and (comment or item.startswith("/*")) and not item.endswith("*/")
        lines = []
    if lines:
        yield lines
