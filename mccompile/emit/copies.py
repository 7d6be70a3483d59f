"""Copy propagation in a printed function: a constant that only stands for another name of its type is not declared,
and an array of one element is a variable.

Templates declare both for the general case: the place of a window that nothing pads is that of its result, and a tile
may have one sum.

Invariant: a name takes the place of another one only where neither changes, and where it means the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from ..base.marked import named, part_of, with_scope
from .declarations import arrays_written, changed, declared, declared_constants, lines_of, printed_constants
from .layout import Block
from .tokens import Token, closing, names_read, printed, split, tokens

_ZEROS = {"float": "0.0f", "double": "0.0", "mcc_index": "0"}
_NO_CODE = ("#", "/*", "* ")
Scope = Mapping[str, str]  # declarations by name


def without_copies(top: Block, operands: Scope) -> None:
    """Changes what is in the functions of a block. `operands` are declarations of those of the last function."""
    for place, item in enumerate(top.inside):
        if isinstance(item, Block):
            _without_arrays_of_one(item)
            _without_copies(item, {**operands, **_parameters(top.inside[place - 1])})


def _parameters(head: Block | str) -> Scope:
    """Those of a function whose head is printed already."""
    if not isinstance(head, str) or not head.startswith("MCC_PART "):
        return {}
    line = tokens(head)
    begin = next(at for at, token in enumerate(line) if token.text == "(")
    each = (declared(f"{printed(one).strip()};") for one in split(line[begin + 1 : closing(line, begin)], ","))
    return {name: declaration for one in each for name, declaration in one.items()}


def _without_copies(block: Block, around: Scope) -> None:
    scope = dict(around)
    at = 0
    while at < len(block.inside):
        item = block.inside[at]
        if isinstance(item, Block):
            _without_copies(item, {**scope, **_declared_in_head(item.head)})
        elif item.startswith("const ") and (copy := _copy(item, scope, block.inside[at + 1 :])):
            name, source, left = copy
            rest = [*([left] if left else []), *block.inside[at + 1 :]]
            block.inside[at:] = [_renamed(each, name, source, scope[source]) for each in rest]
            continue
        else:
            scope |= declared(item)
        at += 1


def _declared_in_head(head: str) -> Scope:
    before, loop, declaration = head.partition("for (")
    return declared(declaration) if loop and (not before or before[:-1].isupper()) else {}


def _copy(line: str, scope: Scope, rest: Sequence[Block | str]) -> tuple[str, str, str] | None:
    """A name that a line declares, the one that it stands for, and what else the line declares."""
    kind, constants = declared_constants(line)
    for place, constant in enumerate(constants):
        source = constant.declarator[-1].name
        if len(constant.declarator) < 3 or constant.declarator[-2].text != "=" or not scope.get(source):
            continue
        own = declared(line).get(constant.name, "")
        if own and _type(own, constant.name) == _type(scope[source], source):
            others = [*constants[:place], *constants[place + 1 :]]
            left = printed_constants(kind, others) if others else ""
            if _stay({constant.name, source}, "*" in own, [*([left] if left else []), *rest]):
                return constant.name, source, left
    return None


def _type(declaration: str, name: str) -> list[str]:
    return declaration.removesuffix(name).replace("MCC_RESTRICT", "").replace("*", " * ").split()


def _stay(names: set[str], are_pointers: bool, items: Sequence[Block | str]) -> bool:
    """Do names keep what they stand for?"""
    for line in _lines(items):
        if line.startswith("#"):
            if names & names_read(line):
                return False
        elif names & (changed([line]) | _declared(line)) or not (are_pointers or names.isdisjoint(_elements(line))):
            return False
    return True


def _lines(items: Sequence[Block | str]) -> list[str]:
    return [line for item in items for line in ([item] if isinstance(item, str) else lines_of(item))]


@lru_cache(maxsize=1 << 14)  # most lines of a template are the same in all functions that it prints
def _declared(line: str) -> frozenset[str]:
    return frozenset((*declared(line), *_declared_in_head(line)))


@lru_cache(maxsize=1 << 14)
def _elements(line: str) -> frozenset[str]:
    return frozenset(arrays_written(tokens(line)))


def _renamed(item: Block | str, name: str, source: str, declaration: str) -> Block | str:
    if isinstance(item, str):
        return _line_renamed(item, name, source)
    if (part := part_of(item.head)) and name in part.scope and source not in part.scope:
        item.head = with_scope(item.head, declaration.replace("MCC_RESTRICT ", ""))
    item.head, item.tail = _line_renamed(item.head, name, source), _line_renamed(item.tail, name, source)
    item.inside = [_renamed(each, name, source, declaration) for each in item.inside]
    return item


def _line_renamed(line: str, name: str, source: str) -> str:
    if name not in line or line.startswith(_NO_CODE):
        return line
    found = tokens(line)
    for place, token in enumerate(found):
        if token.name == name and not _is_field(found, place):
            found[place] = Token(token.before, named(source), source)
    return printed(found)


def _is_field(line: Sequence[Token], at: int) -> bool:
    return at > 0 and line[at - 1].text in (".", "->")


def _without_arrays_of_one(block: Block) -> None:
    for at, item in enumerate(block.inside):
        if isinstance(item, Block):
            _without_arrays_of_one(item)
        elif "[1]" in item and (found := _array_of_one(item)):
            name, declaration = found
            if all(_is_indexed(line, name) for line in _lines(block.inside[at + 1 :])):
                handed = declared(declaration)[name] if declaration.startswith("const ") else _handed(declaration, name)
                block.inside[at:] = [declaration, *(_unindexed(each, name, handed) for each in block.inside[at + 1 :])]


def _handed(declaration: str, name: str) -> str:
    """How a part declares a variable that it may write."""
    return f"{declared(declaration)[name].removesuffix(name)}&{name}"


def _array_of_one(line: str) -> tuple[str, str] | None:
    """The array that a line declares, and how it declares a variable."""
    found = tokens(line)
    at = next(place for place, token in enumerate(found) if token.text == "[")
    words = [token.text for token in found[at:]]
    kind, name = found[: at - 1], found[at - 1].name
    if not kind or not name or any(not token.name or token.name == "static" for token in kind):
        return None
    if words == ["[", "1", "]", ";"]:
        return name, printed([*found[:at], found[-1]])
    value = found[at + 5 : -2]
    if words[:5] != ["[", "1", "]", "=", "{"] or words[-2:] != ["}", ";"] or len(split(value, ",")) != 1:
        return None
    first = value[0]
    if first.text == "0":  # `{0}` fills structs and vectors, too
        zero = _ZEROS.get(kind[-1].name, "0" * kind[-1].name.endswith("_t"))
        if not zero:
            return None
        first = first._replace(text=zero)
    first = first._replace(before=" " + first.before)
    return name, printed([*found[:at], found[at + 3], first, *value[1:], found[-1]])


def _is_indexed(line: str, name: str) -> bool:
    """Is each array of this name in a line read at 0?"""
    if name not in line:
        return True
    if line.startswith("#") or name in _declared(line):
        return False
    found = tokens(line)
    places = (place for place, token in enumerate(found) if token.name == name and not _is_field(found, place))
    return all([token.text for token in found[place + 1 : place + 4]] == ["[", "0", "]"] for place in places)


def _unindexed(item: Block | str, name: str, handed: str) -> Block | str:
    """`handed`: how a part declares the variable."""
    if isinstance(item, Block):
        if (part := part_of(item.head)) and name in part.scope:
            item.head = with_scope(item.head, handed)
        item.head, item.tail = _line_unindexed(item.head, name), _line_unindexed(item.tail, name)
        item.inside = [_unindexed(each, name, handed) for each in item.inside]
        return item
    return _line_unindexed(item, name)


def _line_unindexed(line: str, name: str) -> str:
    if name not in line:
        return line
    found = tokens(line)
    for place in range(len(found) - 1, -1, -1):
        if found[place].name == name and not _is_field(found, place):
            del found[place + 1 : place + 4]
    return printed(found)
