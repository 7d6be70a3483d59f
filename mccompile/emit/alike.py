"""Functions that differ in sizes only: which these are, and names for the sizes that they do not share.

What is compared is what stands around the sizes that printers and templates mark (base/marked.py), so every kernel that
marks them takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from ..base.marked import named, parted, plain
from ..base.names import Names
from ..base.records import dataclass
from ..plan.ir import Function
from .kernels import marked, signature
from .tokens import names_read, tokens, words

SHORTEST = 900  # characters of a body that is worth it
NEAR = 4  # what may be added to several times a number: more is likely to be another number
_BOUNDS = {"<": "end", "<=": "last"}  # what a counter is compared with

Column = tuple[int, ...]  # a number, as the members have it


@dataclass(frozen=True)
class Sized:
    """What stands around the sizes of a text, and these."""

    parts: tuple[str, ...]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Member(Sized):
    """The text of a function."""

    function: Function


def families(functions: Iterable[Function], may_share: Callable[[Function], bool]) -> list[list[Member]]:
    """Functions that can become one, in the order of the first one of each family."""
    found: dict[object, list[Member]] = {}
    for function in functions:
        whole = replace(function, body=function.body or marked(function))
        parts, numbers = parted(whole.body)
        alike: object = function.name
        if not function.table_c and may_share(whole):
            alike = function.kernel.id, signature(replace(function, name="")), *parts
        found.setdefault(alike, []).append(Member(tuple(parts), tuple(numbers), whole))
    return list(found.values())


@dataclass(frozen=True)
class Family:
    """One text for all members: its sizes by name, as the members have them."""

    text: str
    sizes: Mapping[str, Column]


def common(members: Sequence[Sized]) -> Family:
    """Numbers that are so many times another one, or so much more than that, are said by it."""
    parts = members[0].parts
    columns = list(zip(*(member.numbers for member in members), strict=True))
    names = Names(names_read("\n".join(parts)))
    texts: dict[Column, str] = {}
    sizes: dict[str, Column] = {}
    for column in sorted(set(columns)):
        if len(set(column)) == 1:
            texts[column] = str(column[0])
        elif not (text := _said_by(column, sizes)):
            name = names.take(_name(parts[columns.index(column)]))
            sizes[name], texts[column] = column, named(name)
        else:
            texts[column] = text
    others = (f"{texts[column]}{part}" for column, part in zip(columns, parts[1:], strict=True))
    return Family("".join((parts[0], *others)), sizes)


def _said_by(column: Column, sizes: Mapping[str, Column]) -> str:
    for name, known in sizes.items():
        pairs = list(zip(column, known, strict=True))
        times = next((a // b for a, b in pairs if b), 0)
        for factor in (1, times):
            rests = {a - b * factor for a, b in pairs}
            rest = rests.pop()
            if factor < 1 or rests or (factor > 1 and not 0 <= rest < NEAR):
                continue
            product = named(name) if factor == 1 else f"{named(name)} * {factor}"
            return f"({product}{f' {rest:+}'.replace('+', '+ ').replace('-', '- ') if rest else ''})"
    return ""


def _name(before: str) -> str:
    """What a number may be called, by what stands in front of it in its line."""
    line = words(tokens(plain(before.rpartition("\n")[2]).rstrip()))
    match line:
        case [*_, "const", "mcc_index", name, "="]:
            return f"{name}_given"
        case [*_, name, "[", place, "+"] if place.endswith("_in"):
            return f"{name}_step"
        case [*_, name, "*"] if name.isidentifier():
            array = _indexed(line)
            return f"{array}_{name}_step" if array else f"{name}_step"
        case [*_, name, sign] | [*_, name, "+" | "-", _, sign] if sign in _BOUNDS and name.isidentifier():
            return f"{name}_{_BOUNDS[sign]}"
    return "size"


def _indexed(line: Sequence[str]) -> str:
    """The array whose index ends a line that goes on; "" if there is none, or if it has an index in it."""
    at = max((at for at, word in enumerate(line) if word in ("[", "]")), default=0)
    return line[at - 1] if at and line[at] == "[" and line[at - 1].isidentifier() else ""
