"""Steps of sums that functions share: blocks that templates mark as steps (`step` of base/marked.py), and that differ
in sizes only, become one function, which compilers inline (`MCC_PART`). What runs stays the same.

Invariant: such a function is handed every name that its block reads. A block that reads a name whose declaration is
not known stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..base.marked import Part, called, named, part_of, parted, sized
from ..base.names import Names, c_identifier
from ..plan.ir import Function
from .alike import Sized, common
from .kernels import declarations, marked
from .layout import laid_out
from .tokens import names_read

LEAST = 5  # lines of a block that is worth a function
_BLOCK = re.compile("^(?P<head>\ue00a\\+[^\n]*\ue00a) \\{\n(?P<text>(?:[^{}\n]*\n)*?)\\}$", re.MULTILINE)
_DECLARED = re.compile(r"^const \w+ (\w+) = ", re.MULTILINE)
_KNOWN = re.compile(r"const|float|double|u?int\d*(?:_t)?|_?Float16|mcc_\w+")  # types, and functions of the run-time


@dataclass(frozen=True)
class _Place(Sized):
    """A block of a function, with declarations of the names that it reads."""

    function: int
    text: str
    reads: Mapping[str, str]
    name: str

    @property
    def key(self) -> object:
        return self.parts, tuple(self.reads.values()), self.name


def with_shared_steps(functions: Sequence[Function], prefix: str) -> tuple[list[str], list[Function]]:
    """What the steps of several functions become, and these functions in the same order."""
    bodies = [function.body or marked(function) for function in functions]
    families: dict[object, list[_Place]] = {}
    for number, body in enumerate(bodies):
        for match in _BLOCK.finditer(body):
            if (place := _place(number, functions[number], match)) is not None:
                families.setdefault(place.key, []).append(place)
    names = Names(function.name for function in functions)
    texts, calls = list[str](), dict[tuple[int, str], str]()
    for places in families.values():
        if len(places) > 1 and places[0].text.count("\n") >= LEAST:
            text, own = _shared(places, names.take(c_identifier(f"{prefix}_{places[0].name}")))
            texts.append(text)
            calls |= own

    def changed(number: int) -> str:
        return _BLOCK.sub(lambda match: calls.get((number, match[0]), match[0]), bodies[number])

    return texts, [replace(function, body=changed(number)) for number, function in enumerate(functions)]


def _place(number: int, function: Function, match: re.Match[str]) -> _Place | None:
    part = part_of(match["head"])
    assert isinstance(part, Part)
    text = match["text"]
    own = set(_DECLARED.findall(text))
    known = {**declarations(function), **part.scope}
    used = names_read(text) - own
    if any(name not in known and not _KNOWN.fullmatch(name) for name in used):
        return None
    reads = {name: line.replace("MCC_RESTRICT ", "") for name, line in known.items() if name in used}
    parts, sizes = parted(text)
    return _Place(tuple(parts), tuple(sizes), number, match[0], reads, part.name)


def _shared(places: Sequence[_Place], name: str) -> tuple[str, dict[tuple[int, str], str]]:
    """The function for all places, and what each becomes, by its text."""
    first = places[0]
    family = common(places)
    sizes = {size: column for size, column in family.sizes.items() if size in names_read(family.text)}
    head = called(f"MCC_PART void {name}", [*first.reads.values(), *(f"mcc_index {size}" for size in sizes)])
    calls = {}
    for row, place in enumerate(places):
        handed = (*map(named, first.reads), *(sized(column[row]) for column in sizes.values()))
        calls[place.function, place.text] = f"{called(name, handed)};"
    return laid_out(f"{head}\n{{\n{family.text}}}\n"), calls
