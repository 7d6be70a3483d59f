"""Constants that nothing reads are not declared, so templates declare what only some of their lines need.

Invariant: a declaration goes only where no line behind it in its block reads the name, so what stays means the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..base.records import dataclass
from .layout import ENDS, Block, without_comment
from .tokens import ASSIGNS, Token, names_read, printed, split, tokens


@dataclass(frozen=True)
class _Constant:
    """One of a declaration: its name, and `*name[2] = value`."""

    name: str
    declarator: Sequence[Token]


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
        kind, constants = _declaration(whole)
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
            kept.append(_printed(kind, live[::-1]))
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


def _declaration(statement: str) -> tuple[Sequence[Token], list[_Constant]]:
    """The type that a statement declares constants of, and these; none if it is anything else."""
    line = tokens(statement) if statement.startswith("const ") else []
    if len(split(line, ";")) != 2 or line[-1].text != ";":
        return [], []
    first, *others = split(line[:-1], ",")
    begin = next((at for at, token in enumerate(first) if token.text in ("*", "[", "=")), 0)
    begin -= bool(begin) and first[begin].text != "*"
    constants = [_Constant(_name(each), each) for each in (first[begin:], *others)]
    return (first[:begin], constants) if begin and all(constant.name for constant in constants) else ([], [])


def _name(declarator: Sequence[Token]) -> str:
    """That of a declarator with a value that changes nothing; "" if it is none."""
    texts = [token.text for token in declarator]
    at = next((at for at, text in enumerate(texts) if text in ("[", "=")), 0)
    fixed = "=" in texts and ASSIGNS.isdisjoint(texts[texts.index("=") + 1 :])
    return declarator[at - 1].name if at and fixed else ""


def _printed(kind: Sequence[Token], constants: Sequence[_Constant]) -> str:
    first, *others = (constant.declarator for constant in constants)
    first = [first[0]._replace(before=" "), *first[1:]]
    return f"{printed(kind)}{','.join(map(printed, (first, *others)))};"
