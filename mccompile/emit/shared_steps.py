"""Steps of sums that functions share: blocks that templates mark as steps (`step` of base/marked.py), and that differ
in sizes only, become one function, which compilers inline (`MCC_PART`). What runs stays the same. Steps may hold
steps: the inner ones come first.

Invariant: such a function is handed every name that its block reads. A block stays where it is if it changes a local
that is not an array, or reads a name whose declaration is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from functools import lru_cache

from ..base.marked import Part, called, named, part_of, parted, sized
from ..base.names import Names, c_identifier
from ..base.records import dataclass, replace
from ..plan.ir import Function
from .alike import Sized, common
from .declarations import changed, declared
from .kernels import declarations, marked
from .layout import blocks, closes, opens, shown
from .parts import dissolve
from .tokens import is_type, names_read

LEAST = 5  # lines of a block that is worth a function
MOST_SIZES = 8  # a call that hands more is no easier to read than the block


@dataclass
class _Text:
    """A function: its name, its lines, and the declarations of its parameters."""

    name: str
    lines: list[str]
    declarations: Mapping[str, str]


@dataclass(frozen=True)
class _Place(Sized):
    """A block of a function, from line `begin` to `end`, with declarations of the names that it reads."""

    holder: _Text
    begin: int
    end: int
    reads: Mapping[str, str]
    name: str

    @property
    def key(self) -> object:
        return self.parts, tuple(self.reads.values()), self.name

    @property
    def length(self) -> int:
        return self.end - self.begin

    def meets(self, other: _Place) -> bool:
        """Is one of them inside of the other?"""
        return self.holder is other.holder and self.begin < other.end and other.begin < self.end


@dataclass(frozen=True)
class _Open:
    """A block whose end has not been met: where it begins, the part that it is, and what stands in it so far."""

    begin: int
    part: Part | None
    lines: list[str]


def with_shared_steps(functions: Sequence[Function], prefix: str) -> tuple[list[str], list[Function]]:
    """What the steps of several functions become, and these functions in the same order."""
    names = Names(function.name for function in functions)
    bodies = [_Text(each.name, (each.body or marked(each)).splitlines(), declarations(each)) for each in functions]
    shared: list[_Text] = []
    while new := _shared(bodies, {each.name for each in shared}, names, prefix):
        shared += new
    texts = ("\n".join(body.lines) + "\n" for body in bodies)
    done = [replace(function, body=text) for function, text in zip(functions, texts, strict=True)]
    return [_printed(each) for each in shared], done


def _shared(texts: Sequence[_Text], known: Set[str], names: Names, prefix: str) -> list[_Text]:
    """Functions of the steps that several places have, the shortest ones first. These places call them from now
    on, so what holds them may be equal in turn."""
    families: dict[object, list[_Place]] = {}
    for text in texts:
        for place in _places(text, known):
            families.setdefault(place.key, []).append(place)
    functions: list[_Text] = []
    calls: list[tuple[_Place, str]] = []
    for family in sorted(families.values(), key=lambda family: family[0].length):
        places = [place for place in family if not any(place.meets(other) for other, _ in calls)]
        if len(places) > 1 and (made := _function(places, names, prefix)):
            functions.append(made[0])
            calls += zip(places, made[1], strict=True)
    for place, call in sorted(calls, key=lambda each: -each[0].begin):  # what stands in front of a place stays there
        place.holder.lines[place.begin : place.end] = [call]
    return functions


def _function(places: Sequence[_Place], names: Names, prefix: str) -> tuple[_Text, list[str]] | None:
    """The function of places that differ in sizes only, and their calls; none where these would hand too much."""
    first, family = places[0], common(places)
    sizes = {size: column for size, column in family.sizes.items() if size in names_read(family.text)}
    if len(sizes) > MOST_SIZES:
        return None
    name = names.take(c_identifier(f"{prefix}_{first.name}"))
    parameters = {**first.reads, **{size: f"mcc_index {size}" for size in sizes}}
    head = called(f"MCC_PART void {name}", parameters.values())
    rows = zip(*sizes.values(), strict=True) if sizes else [()] * len(places)
    calls = [f"{called(name, (*map(named, first.reads), *map(sized, row)))};" for row in rows]
    return _Text(name, [head, "{", *family.text.splitlines(), "}"], parameters), calls


def _places(text: _Text, known: Set[str]) -> Iterator[_Place]:
    """The steps of a function that may become functions; `known` are functions that they may call."""
    around = [_Open(-1, None, [])]
    for at, line in enumerate(map(str.strip, text.lines)):
        if line.startswith("#"):
            continue
        if closes(line):
            block = around.pop()
            long = at - block.begin > LEAST
            if block.part and block.part.is_step and long and (place := _place(text, known, block, at + 1, around)):
                yield place
        if opens(line):
            around.append(_Open(at, part_of(line), [line]))
        elif not closes(line):
            around[-1].lines.append(line)


def _is_known(name: str) -> bool:
    """Types, and functions of the run-time."""
    return name == "for" or name.startswith("mcc_") or is_type(name)


def _place(text: _Text, known: Set[str], block: _Open, end: int, around: Sequence[_Open]) -> _Place | None:
    assert block.part is not None
    lines = [line.strip() for line in text.lines[block.begin + 1 : end - 1]]
    own = {name for line in lines for name in _declared(line)}
    used = {name for line in lines for name in names_read(line)} - own - known
    scope = {**text.declarations, **_scope(around, used - text.declarations.keys())}
    if any(name not in scope and not _is_known(name) for name in used) or changed(lines) - own:
        return None
    reads = {name: line.replace("MCC_RESTRICT ", "") for name, line in scope.items() if name in used}
    parts, sizes = parted("\n".join(lines) + "\n")
    return _Place(tuple(parts), tuple(sizes), text, block.begin, end, reads, block.part.name)


def _scope(around: Sequence[_Open], used: set[str]) -> dict[str, str]:
    """Declarations of these names in the blocks around a place, as far as they can be read."""
    found: dict[str, str] = {}
    for block in around:
        found |= block.part.scope if block.part else {}
        for line in block.lines:
            if any(name in line for name in used):
                found |= _declared(line)
    return {name: line for name, line in found.items() if name in used and line and "&" not in line}


@lru_cache(maxsize=1 << 14)  # as names_read
def _declared(line: str) -> Mapping[str, str]:
    return declared(line.partition("(")[2] if opens(line) else line)


def _printed(function: _Text) -> str:
    top = blocks("\n".join(function.lines))
    dissolve(top)
    return shown(top)
