"""How a function of C lies on the page: blocks are indented, and those that mean nothing are taken away.

A template says so by its lines: one that opens a block ends with `{`, one that closes it begins with `}`, and a
statement, label or comment ends with its line or goes on in the next, which is indented once more. A comment may stand
at the end of a line; what else stands in it is never looked at. A block of its own whose end is that of the block
around it is part of that, unless a block stands in front of it, which may have the same names. So is one that declares
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import field

from ..base.errors import Problem, WrongUse
from ..base.marked import opens_part
from ..base.records import dataclass
from .tokens import ASSIGNS, closing, tokens

_INDENT = " " * 4
_MACRO = re.compile(r"^\s*([A-Z_]+)\s+(?=for \()", re.MULTILINE)  # in front of a loop
ENDS = ("{", "}", ";", ":")  # of lines that do not go on in the next


@dataclass
class Block:
    """`head {`, lines and blocks, `}`; what stands behind the bracket is the head of the next block, or `tail`."""

    head: str
    inside: list[Block | str] = field(default_factory=list)
    tail: str = "}"


def laid_out(text: str) -> str:
    return shown(blocks(text))


def shown(top: Block) -> str:
    """What a tree prints: its lines, indented."""
    lines: list[str] = []
    _write(_merged(top.inside), 0, lines)
    return "\n".join(lines) + "\n"


def blocks(text: str) -> Block:
    """The tree of a text, in a block without a head."""
    lines = [line.strip() for line in _MACRO.sub(r"\1 ", text).splitlines() if line.strip()]
    top = Block("")
    opened = [top]
    for line in lines:
        if line.startswith("#"):
            opened[-1].inside.append(line)
            continue
        if closes(line):
            if len(opened) == 1:
                raise WrongUse(_unmatched(line))
            opened.pop().tail = "" if opens(line) else line
        if opens(line):
            block = Block(line)
            opened[-1].inside.append(block)
            opened.append(block)
        elif not closes(line):
            opened[-1].inside.append(line)
    if len(opened) > 1:
        raise WrongUse(_unmatched(opened[-1].head))
    return top


def without_comment(line: str) -> str:
    """A line without the comment at its end."""
    return line.rpartition("/*")[0].rstrip() if line.endswith("*/") else line


def opens(line: str) -> bool:
    """Does a line open a block?"""
    return without_comment(line).endswith("{")


def closes(line: str) -> bool:
    return line.startswith("}")


def _unmatched(line: str) -> Problem:
    why = "no line of it closes what this one opens, or opens what it closes"
    fix = "end every line that opens a block with {, and begin every line that closes one with }"
    return Problem("a template has blocks that its lines do not show", line, why, fix)


def _merged(inside: Sequence[Block | str], in_part: bool = False) -> list[Block | str]:
    """A block that is all the rest of the one around it becomes lines of that; not of a part, whose brackets may go."""
    found: list[Block | str] = []
    for item in inside:
        if isinstance(item, Block):
            item = Block(item.head, _merged(item.inside, opens_part(item.head)), item.tail)
            if _declares_nothing(item) and (not found or _is_complete(found[-1])):
                found += item.inside
                continue
        found.append(item)
    last = found[-1] if found else ""
    before = found[-2] if len(found) > 1 else ";"
    alone = not in_part and isinstance(before, str) and without_comment(before).endswith(";")
    if alone and isinstance(last, Block) and (last.head, last.tail) == ("{", "}"):
        found[-1:] = last.inside
    return found


def _is_complete(item: Block | str) -> bool:
    return isinstance(item, Block) or without_comment(item).endswith(";")


def _declares_nothing(block: Block) -> bool:
    """Is it a block of its own in which nothing is named, so that its brackets mean nothing?"""
    lines = (item for item in block.inside if isinstance(item, str))
    return (block.head, block.tail) == ("{", "}") and all(map(_is_statement, lines))


def _is_statement(line: str) -> bool:
    """Is it a comment, or an assignment or a call in one line? What a macro in capitals declares is not known."""
    code = tokens(without_comment(line))
    if not code:
        return True
    if len(code) < 3 or code[-1].text != ";" or not code[0].name or code[0].name.isupper():
        return False
    behind = closing(code, 1) + 1 if code[1].text == "[" else 1
    is_assigned = behind < len(code) and code[behind].text in ASSIGNS
    return is_assigned or (code[1].text == "(" and not code[1].before)


def _write(inside: Sequence[Block | str], depth: int, lines: list[str], elements: bool = False) -> None:
    goes_on = comment = False
    indent, deeper = _INDENT * depth, _INDENT * (depth + 1)
    for item in inside:
        if isinstance(item, Block):
            head = _MACRO.sub(rf"\1\n{indent}", item.head)  # on a line of its own, as clang-format has it
            lines.append((deeper if goes_on and item.head != "{" else indent) + head)
            _write(item.inside, depth + 1, lines, item.head.endswith("= {"))
            if item.tail:
                lines.append(indent + item.tail)
            goes_on = False
        elif item.startswith("#"):
            lines.append(item)
        else:
            comment = comment or item.startswith("/*")
            lines.append((deeper if goes_on else indent) + " " * (comment and not item.startswith("/*")) + item)
            comment = comment and not item.endswith("*/")
            code = "" if elements or comment else without_comment(item)
            goes_on = bool(code) and not code.endswith(ENDS)
