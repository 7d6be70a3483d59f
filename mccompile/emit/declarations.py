"""What lines of a printed function declare and change: names, as far as lines can be read alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from ..base.records import dataclass
from .layout import Block
from .tokens import ASSIGNS, Token, closing, is_binary, printed, split, tokens

_QUALIFIERS = ("", "const", "MCC_RESTRICT")
_NO_TYPES = {"return", "goto", "else", "case", "do"}


def lines_of(block: Block) -> Iterator[str]:
    """Those of a block and of the blocks in it, with their heads and tails."""
    yield block.head
    for item in block.inside:
        if isinstance(item, Block):
            yield from lines_of(item)
        else:
            yield item
    yield block.tail


def changed(lines: Iterable[str]) -> set[str]:
    """Names that lines assign to, take the address of, or hand to macros."""
    return {name for line in lines for name in _changed(line)}


@lru_cache(maxsize=1 << 14)  # most lines of a template are the same in all functions that it prints
def _changed(line: str) -> frozenset[str]:
    found = tokens(line)
    return frozenset((*names_written(found), *names_in_macros(found)))


def names_written(line: Sequence[Token]) -> Iterator[str]:
    """Names that a line assigns to, or takes the address of."""
    for at, token in enumerate(line):
        before = line[at - 1].text if at else ""
        after = line[at + 1].text if at + 1 < len(line) else ""
        address = before == "&" and not is_binary(line, at - 1)
        if token.name and (after in ASSIGNS or after == "." or before in ("++", "--") or address):
            yield token.name


def arrays_written(line: Sequence[Token]) -> Iterator[str]:
    """Names of which a line assigns to an element."""
    for at, token in enumerate(line):
        if token.name and at + 1 < len(line) and line[at + 1].text == "[":
            end = closing(line, at + 1) + 1
            if end < len(line) and line[end].text in ASSIGNS:
                yield token.name


def names_in_macros(line: Sequence[Token]) -> Iterator[str]:
    """Names that a line hands to macros."""
    for at, token in enumerate(line[:-1]):
        if token.name.isupper() and line[at + 1].text == "(":
            yield from (each.name for each in line[at + 2 : closing(line, at + 1)] if each.name)


def declared(line: str) -> dict[str, str]:
    """The locals that a line declares, each as a part declares it; "" where that cannot be said."""
    found = [token for token in tokens(line) if not token.text.startswith("/*")]
    end = next((at for at, token in enumerate(found) if not token.name), len(found))
    if end < len(found) and found[end].text != "*":
        end = max(end - 1, 0)  # a type, and the name that follows it
    base = [token.name for token in found[:end] if token.name != "static"]
    if not base or base[0] in _NO_TYPES:
        return {}
    declarations = {}
    unknown = {token.name: "" for token in found[end:] if token.name not in _QUALIFIERS}
    for declarator in split(split(found[end:], ";")[0], ","):
        start = next((at for at, token in enumerate(declarator) if token.name not in _QUALIFIERS), len(declarator))
        if start == len(declarator) or any(token.text not in ("*", *_QUALIFIERS) for token in declarator[:start]):
            return unknown
        name, rest = declarator[start].name, [token.text for token in declarator[start + 1 :]]
        if rest and rest[0] not in ("=", "["):
            return unknown
        is_array = rest[:1] == ["["]
        stars = "*" * (sum(token.text == "*" for token in declarator[:start]) + is_array)
        stars += "MCC_RESTRICT " * any(token.name == "MCC_RESTRICT" for token in declarator[:start])
        table = is_array and closing(declarator, start + 1) + 1 < len(declarator)
        beyond = declarator[closing(declarator, start + 1) + 1].text if table else ""
        kind = " ".join(base if stars else [word for word in base if word != "const"])
        declarations[name] = "" if beyond == "[" else f"{kind} {stars}{name}"
    return declarations


@dataclass(frozen=True)
class Constant:
    """One of a declaration: its name, and `*name[2] = value`."""

    name: str
    declarator: Sequence[Token]


def declared_constants(statement: str) -> tuple[Sequence[Token], list[Constant]]:
    """The type that a statement declares constants of, and these; none if it is anything else."""
    line = tokens(statement) if statement.startswith("const ") else []
    if len(split(line, ";")) != 2 or line[-1].text != ";":
        return [], []
    first, *others = split(line[:-1], ",")
    begin = next((at for at, token in enumerate(first) if token.text in ("*", "[", "=")), 0)
    begin -= bool(begin) and first[begin].text != "*"
    constants = [Constant(_constant_name(each), each) for each in (first[begin:], *others)]
    return (first[:begin], constants) if begin and all(constant.name for constant in constants) else ([], [])


def _constant_name(declarator: Sequence[Token]) -> str:
    """That of a declarator with a value that changes nothing; "" if it is none."""
    texts = [token.text for token in declarator]
    at = next((at for at, text in enumerate(texts) if text in ("[", "=")), 0)
    fixed = "=" in texts and ASSIGNS.isdisjoint(texts[texts.index("=") + 1 :])
    return declarator[at - 1].name if at and fixed else ""


def printed_constants(kind: Sequence[Token], constants: Sequence[Constant]) -> str:
    first, *others = (constant.declarator for constant in constants)
    first = [first[0]._replace(before=" "), *first[1:]]
    return f"{printed(kind)}{','.join(map(printed, (first, *others)))};"
