"""C under construction: text with marks in it, which say what whoever prints it has to know, so that nobody reads C
back. Marks are pairs of characters that no C has; text with marks is joined and filled into templates as any other.

A mark says that a header is needed (it prints nothing), that a name is used (it prints the name), or that a number is
a size: part of an expression of mcc_index alone, where a variable of that type could stand. `SIGNATURE` stands for
that of a function, which its body follows.

A block of a template may be marked as a part: where its function is too long, it becomes one of its own, which is
handed what it reads of the names in whose scope it stands. One that is marked as a step becomes a function where the
steps of several functions are equal.

Where a comment may be folded, a character in front of the blanks between its words says; it stays in text that is not
printed yet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from .records import dataclass

_BEGIN, _BETWEEN, _END, SIGNATURE = "\ue000", "\ue001", "\ue002", "\ue003"
WORD = "\ue009"  # of a comment, whose line may end here
_PART = "\ue00a"
_STEP = "+"  # begins the name of a part that is a step
_HEADER, _NAME, _SIZE = "header", "name", "size"
_MARK = re.compile(f"{_BEGIN}(\\w+){_BETWEEN}([^{_END}]*){_END}")
_UNPRINTED = re.compile(f"{_BEGIN}{_HEADER}{_BETWEEN}[^{_END}]*{_END}|{_BEGIN}\\w+{_BETWEEN}|[{_END}{WORD}]")


@dataclass(frozen=True)
class Part:
    """A block that may become a function: what it is, and the names that it may read besides the parameters of the
    function around it, each with its C declaration; `type &name` is a local that it may write as well."""

    name: str
    scope: Mapping[str, str]
    is_step: bool = False


@dataclass(frozen=True)
class Marked:
    """Text that is done, and what its marks said."""

    text: str
    headers: frozenset[str]
    names: frozenset[str]


def including(header: str) -> str:
    """A mark: what stands here needs a header."""
    return f"{_BEGIN}{_HEADER}{_BETWEEN}{header}{_END}"


def named(name: str) -> str:
    """A name, and the mark that it is used."""
    return f"{_BEGIN}{_NAME}{_BETWEEN}{name}{_END}"


def marked_name(text: str) -> str:
    """Text, marked where it is a name."""
    return named(text) if text.isidentifier() else text


def part(name: str, scope: Iterable[str] = ()) -> str:
    """What stands in front of the bracket that opens a part. The scope lists declarations; a name alone is an index.
    Without a name it is none, and its brackets go."""
    return f"{_PART}{name}{_BETWEEN}{_BETWEEN.join(scope)}{_PART}"


def step(name: str) -> str:
    """What stands in front of the bracket that opens a step."""
    return part(f"{_STEP}{name}")


def opens_part(head: str) -> bool:
    return head.startswith(_PART)


def part_of(head: str) -> Part | None:
    """The part that the head of a block opens."""
    if not opens_part(head):
        return None
    name, *scope = head.split(_PART)[1].split(_BETWEEN)
    declarations = [each if " " in each else f"mcc_index {each}" for each in scope if each]
    scope_of = {each.split()[-1].lstrip("*&"): each for each in declarations}
    return Part(name.removeprefix(_STEP), scope_of, is_step=name.startswith(_STEP))


def with_scope(head: str, declaration: str) -> str:
    """The head of a block that opens a part, with another name in its scope."""
    _, scope, rest = head.split(_PART)
    return f"{_PART}{scope}{_BETWEEN}{declaration}{_PART}{rest}"


def names_alone(text: str) -> str:
    """Text with no marks but those of names, of parts, and of where comments may be folded."""
    return "".join(named(piece) if kind == _NAME else piece for kind, piece in _pieces(text) if kind != _HEADER)


def sized(number: int) -> str:
    """A number, and the mark that it is a size. 0 is none: what is not there has no place in C."""
    return f"{'-' * (number < 0)}{_BEGIN}{_SIZE}{_BETWEEN}{abs(number)}{_END}" if number else "0"


def listed(items: Iterable[str]) -> str:
    """`a, b`, as it stands between brackets."""
    return ", ".join(items)


def called(function: str, arguments: Iterable[str]) -> str:
    return f"{function}({listed(arguments)})"


def summed(terms: Iterable[str]) -> str:
    """`a + b - c`."""
    first, *others = terms
    return " ".join((first, *(f"- {term[1:]}" if term.startswith("-") else f"+ {term}" for term in others)))


def words(text: str) -> str:
    """Words of a comment."""
    return text.replace(" ", f"{WORD} ")


def parted(text: str) -> tuple[list[str], list[int]]:
    """What stands around the sizes of a text, one piece more than there are sizes; and these. Other marks stay."""
    parts, sizes = [""], []
    for kind, piece in _pieces(text):
        if kind == _SIZE:
            sizes.append(int(piece))
            parts.append("")
        else:
            parts[-1] += f"{_BEGIN}{kind}{_BETWEEN}{piece}{_END}" if kind else piece
    return parts, sizes


def read(text: str) -> Marked:
    """What marks said, and the text, which still says where its comments may be folded."""
    marks = _MARK.findall(text)
    headers, names = (frozenset(piece for kind, piece in marks if kind == each) for each in (_HEADER, _NAME))
    return Marked(_MARK.sub(lambda mark: "" if mark[1] == _HEADER else mark[2], text), headers, names)


def plain(text: str) -> str:
    if text.isprintable():  # as most lines: no mark is
        return text
    return _UNPRINTED.sub("", text)


def unmarked(text: str) -> str:
    """Text of users, without characters that would be marks."""
    return text.translate(dict.fromkeys(map(ord, (_BEGIN, _BETWEEN, _END, SIGNATURE, _PART, WORD)), "?"))


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    first, *others = text.split(_BEGIN)
    yield "", first
    for other in others:
        mark, _, rest = other.partition(_END)
        kind, _, piece = mark.partition(_BETWEEN)
        yield kind, piece
        yield "", rest
