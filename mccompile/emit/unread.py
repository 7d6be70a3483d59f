"""Locals that nothing reads are not declared: templates declare what they may need (`local` of base/marked.py), and
whoever reads it marks the name.

Invariant: a declaration goes only where no line behind it in its block reads the name, so what stays means the same.
"""

from __future__ import annotations

from ..base.marked import locals_of, read
from .layout import closes, opens


def without_unread(text: str) -> str:
    kept: list[str] = []
    following: list[set[str]] = [set()]  # names read behind a line, in each of the blocks around it
    for line in reversed(text.splitlines()):
        bare = line.strip()
        declared = locals_of(bare)
        if declared and not declared & following[-1]:
            continue
        if opens(bare) and len(following) > 1:
            inside = following.pop()
            following[-1] |= inside
        following[-1] |= read(bare).names
        if closes(bare):
            following.append(set())
        kept.append(line)
    return "\n".join(reversed(kept)) + "\n"
