"""Which loop of a function that nests too deep becomes a function of its own, and what it is handed.

Invariant: a loop is taken only where every local that it reads is declared in a line that can be read here, and where
nothing in it ends the function; what it writes of the locals around it is handed as `type &name` (base/marked.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from ..base.marked import opens_part, part
from ..base.records import dataclass
from .layout import Block
from .tokens import ASSIGNS, Token, closing, is_binary, names_read, split, tokens

_LOOPS = ("for (", "while (")
_LEAVES = frozenset(("return", "goto"))
_QUALIFIERS = ("", "const", "MCC_RESTRICT")
_NO_TYPES = {"return", "goto", "else", "case", "do"}
_POINTER = 3  # a local that is written reads as badly as so many that are read
SHORTEST = 6  # lines that are not worth a function


@dataclass(frozen=True)
class DeepLoop:
    """A loop, where it stands, and the head of the part that holds it."""

    around: Block
    place: int
    head: str
    cost: tuple[bool, int]  # is it short, and what it is handed


def deep_loop(block: Block, parameters: Mapping[str, str], deepest: int) -> DeepLoop | None:
    """The one to take out of a block, so that what is left, or the part, is less deep."""
    fixed = {name for name, declaration in parameters.items() if "&" not in declaration}
    found = _loops(block, 0, dict(parameters), fixed, deepest)
    return min(found, key=lambda loop: loop.cost, default=None)


def depth(block: Block) -> int:
    """How deep the blocks in a block are nested, where its parts stay in it."""
    inside = (item for item in block.inside if isinstance(item, Block))
    return max((depth(item) + (not opens_part(item.head)) for item in inside), default=0)


def _loops(block: Block, at: int, scope: dict[str, str], fixed: set[str], deepest: int) -> Iterator[DeepLoop]:
    """Those that are too deep; `at` is how deep the block is, `fixed` has the names that a part cannot write."""
    for place, item in enumerate(block.inside):
        new = declared(item if isinstance(item, str) else item.head)
        scope |= new
        fixed -= new.keys()
        if isinstance(item, str):
            continue
        high = depth(item) + 1
        if at + high <= deepest:
            continue
        ends = place + 1 == len(block.inside) or not str(getattr(block.inside[place + 1], "head", "")).startswith("}")
        if item.head.startswith(_LOOPS) and ends and high <= deepest and (loop := _taken(block, place, scope, fixed)):
            yield loop
        inside = {**scope, **declared(item.head.partition("(")[2])}
        yield from _loops(item, at + (not opens_part(item.head)), inside, set(fixed), deepest)


def _taken(around: Block, place: int, scope: Mapping[str, str], fixed: set[str]) -> DeepLoop | None:
    loop = around.inside[place]
    assert isinstance(loop, Block)
    lines = list(_lines(loop))
    reads = {name for line in lines for name in names_read(line)} & scope.keys()
    written = [tokens(line) for line in lines]
    writes = {name for line in written for name in _written(line)} & reads
    # An element of a vector, and what a macro is handed, may be written too; a pointer stays what it is.
    values = {name for name in reads - fixed if "*" not in scope[name]}
    writes |= {name for line in written for name in (*_elements(line), *_in_macros(line))} & values
    unknown = any(not scope[name] for name in reads)
    if unknown or writes & fixed or any(map(_leaves, lines)):
        return None
    counter = next(iter(declared(loop.head.partition("(")[2])), "")
    head = part(
        f"over_{counter}_" if counter else "loop", (_handed(scope[name], name in writes) for name in sorted(reads))
    )
    return DeepLoop(around, place, head, (len(lines) < SHORTEST, len(reads) + _POINTER * len(writes)))


def _leaves(line: str) -> bool:
    """May it leave the function, or does the preprocessor read it?"""
    return line.startswith("#") or not _LEAVES.isdisjoint(names_read(line))


def _handed(declaration: str, is_written: bool) -> str:
    kind, _, name = declaration.rpartition(" ")
    stars = name[: len(name) - len(name.lstrip("*"))]
    return f"{kind} {stars}{'&' * is_written}{name[len(stars) :].removeprefix('&')}"


def _lines(block: Block) -> Iterator[str]:
    yield block.head
    for item in block.inside:
        if isinstance(item, Block):
            yield from _lines(item)
        else:
            yield item
    yield block.tail


def changed(lines: Iterable[str]) -> set[str]:
    """Names that lines assign to, take the address of, or hand to macros."""
    return {name for line in lines for name in _changed(line)}


@lru_cache(maxsize=1 << 14)  # most lines of a template are the same in all functions that it prints
def _changed(line: str) -> frozenset[str]:
    found = tokens(line)
    return frozenset((*_written(found), *_in_macros(found)))


def _written(line: Sequence[Token]) -> Iterator[str]:
    """Names that a line assigns to, or takes the address of."""
    for at, token in enumerate(line):
        before = line[at - 1].text if at else ""
        after = line[at + 1].text if at + 1 < len(line) else ""
        address = before == "&" and not is_binary(line, at - 1)
        if token.name and (after in ASSIGNS or after == "." or before in ("++", "--") or address):
            yield token.name


def _elements(line: Sequence[Token]) -> Iterator[str]:
    """Names of which a line assigns to an element."""
    for at, token in enumerate(line):
        if token.name and at + 1 < len(line) and line[at + 1].text == "[":
            end = closing(line, at + 1) + 1
            if end < len(line) and line[end].text in ASSIGNS:
                yield token.name


def _in_macros(line: Sequence[Token]) -> Iterator[str]:
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
