"""Constants that nothing reads are not declared, so templates declare what only some of their lines need.

Invariant: a declaration goes only where no line behind it in its block reads the name, so what stays means the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..base.marked import COMMA
from .layout import ENDS, Block
from .tokens import names_read

# One alone, and several without arrays or pointers.
_DECLARED = re.compile(r"const [\w *]*?(\w+)(?:\[\w*\])* = (?:\{[^;]*\}|(?:[^{=]|[=<>!]=)*);")
_SEVERAL = re.compile(rf"(const (?:\w+ )+)(\w+ = [^{{]*,{COMMA}? \w+ = [^{{]*);")
_COMMA = re.compile(rf",{COMMA}? (?=\w+ = )")
_COMMENT = re.compile(r"\s*/\*.*\*/$")


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
        left = _without_dead(whole, read)
        read = read - _declared(left) | names_read(left) - _declared(left)
        kept += reversed(item if left == whole else [left] if left else [])
    block.inside = kept[::-1]
    return read


def _statements(inside: Sequence[Block | str]) -> Iterator[Block | list[str]]:
    """The lines of each, of a comment one by one."""
    lines: list[str] = []
    comment = False
    for item in inside:
        if isinstance(item, str) and not comment and not item.startswith(("/*", "#")):
            lines.append(item)
            if not _COMMENT.sub("", item).endswith(ENDS):
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


def _declared(statement: str) -> set[str]:
    """Lines in front of it that read these names mean others."""
    if one := _DECLARED.fullmatch(statement):
        return {one[1]}
    several = _SEVERAL.fullmatch(statement)
    return {each.split(" = ")[0] for each in _COMMA.split(several[2])} if several else set()


def _without_dead(item: str, read: set[str]) -> str:
    """A line without what it declares for nobody; empty if nothing is left."""
    declared = _DECLARED.fullmatch(item)
    if declared is not None:
        return item if declared[1] in read else ""
    several = _SEVERAL.fullmatch(item)
    if several is None:
        return item
    read, kept = {*read}, list[str]()
    for one in reversed(_COMMA.split(several[2])):
        if one.split(" = ")[0] in read:
            kept.insert(0, one)
            read.update(names_read(one))
    between = f",{COMMA} " if COMMA in several[2] else ", "
    return f"{several[1]}{between.join(kept)};" if kept else ""
