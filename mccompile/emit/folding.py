"""Long lines of generated C are folded, so that it reads in an editor and in a review. clang-format with the
repository's .clang-format leaves them as they are: in the fewest brackets first, behind commas, before operators, and
behind the bracket of a call. A continued line is indented by four columns more than the line on which its bracket
opens, further names of a declaration as the first one.

Comments are folded between their words where marks say so (base/marked.py). Literals and directives of the preprocessor
stay whole. Invariant: only blanks and ends of lines change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import NamedTuple

from ..base.marked import WORD, plain
from ..base.records import dataclass
from .declarations import declared
from .tokens import ASSIGNS, Token, closing, is_binary, is_cast, tokens

WIDTH = 120
_STEP = 4  # columns that a continued line is indented by
_LEAST = 8  # columns of code that a fold leaves on a line at least
_COMMA, _ASSIGNMENT = 0, 1
_OPERATORS = ("? :", "||", "&&", "|", "^", "&", "== !=", "< > <= >=", "<< >>", "+ -", "* / %")  # the weakest first
_CALL = 2 + len(_OPERATORS)
_STATEMENTS = ("if", "for", "while", "switch", "return")
_RANKS = {operator: rank for rank, several in enumerate(_OPERATORS, 2) for operator in several.split()}


def folded(text: str) -> str:
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line))


def _pieces(line: str) -> Iterator[str]:
    bare = plain(line)
    if len(bare) <= WIDTH or bare.startswith("#"):
        yield bare
        return
    begin = len(bare) - len(bare.lstrip())
    places = _Places(begin + _STEP)
    places.find_words(line)
    if "//" not in bare and not bare.lstrip().startswith(("/*", "*")):
        places.find_code(bare)
    places.settle(len(bare.rstrip()))
    first = bare[:begin]
    comment = f"{first}* " if bare.lstrip().startswith("*") else f"{first} * "
    indents = [(0, begin)]  # of the lines, by where they begin
    while at := places.fold(begin, WIDTH - len(first), len(bare)):
        yield (first + bare[begin:at]).rstrip()
        begin = at + len(bare[at:]) - len(bare[at:].lstrip())
        opened = places.ranks[at].opened
        indent = places.continued
        if opened:
            indent = _STEP + next(columns for start, columns in reversed(indents) if start <= opened)
        first = comment if at in places.words else " " * indent
        indents.append((begin, indent))
    yield first + bare[begin:]


class _Rank(NamedTuple):
    """Of a place: how many brackets it is in, what it is, and where the innermost bracket opens; 0: none does."""

    depth: int
    kind: int
    opened: int = 0


@dataclass
class _Places:
    """Where a line may be folded."""

    continued: int  # columns that a line which is in no bracket is indented by
    ranks: dict[int, _Rank] = field(default_factory=dict)
    words: set[int] = field(default_factory=set)
    then: dict[int, int] = field(default_factory=dict)  # where to fold as well, where a place is folded
    closed: dict[int, tuple[int, int]] = field(default_factory=dict)  # where brackets close, and which are around them
    wanted: set[int] = field(default_factory=set)
    sorted: list[int] = field(default_factory=list)

    def find_words(self, line: str) -> None:
        """Blanks that marks stand in front of."""
        before, *others = line.split(WORD)
        at = len(plain(before))
        for other in others:
            self.ranks[at] = _Rank(0, _COMMA)
            self.words.add(at)
            at += len(plain(other))

    def find_code(self, bare: str) -> None:
        line = tokens(bare)
        around, choices = [0], list[int]()
        ends: list[int] = []
        for at, token in enumerate(line):
            before = ends[-1] if ends else 0
            begin = before + len(token.before)
            ends.append(begin + len(token.text))
            rank = _Rank(len(around) - 1, _COMMA, around[-1])
            if token.text in ("?", ":") and token.before:
                self._choose(token.text, before, choices)
            if token.text in _RANKS and token.before and is_binary(line, at):
                self.ranks[before] = rank._replace(kind=_RANKS[token.text])
            elif token.text in ("(", "[", "{"):
                around.append(begin)
                if _is_call(line, at):
                    self.ranks[ends[-1]] = _Rank(len(around) - 1, _CALL, begin)
            elif token.text in (")", "]", "}") and len(around) > 1:
                opened = around.pop()
                self.closed[opened] = ends[-1], around[-1]
            elif token.text in (",", ";"):
                self.ranks[ends[-1]] = rank
            elif token.text in ASSIGNS and token.before:
                self.ranks[ends[-1]] = rank._replace(depth=len(around), kind=_ASSIGNMENT)  # rather than in either side
        self._find_statement(bare, line, ends)

    def _choose(self, operator: str, at: int, choices: list[int]) -> None:
        """Both sides of a choice begin a line, or neither does."""
        if operator == "?":
            choices.append(at)
        elif choices:
            self.then[choices.pop()] = at

    def _find_statement(self, bare: str, line: Sequence[Token], ends: Sequence[int]) -> None:
        """What a condition in one line guards, and the names of a declaration."""
        end = closing(line, 1) if len(line) > 1 and line[0].name in ("if", "for", "while") else len(line)
        if end + 1 < len(line) and line[end + 1].text not in ("{", ";"):
            self.ranks[ends[end]] = _Rank(-1, _COMMA)
        if names := [*declared(bare)]:
            at = next(at for at, token in enumerate(line) if token.name == names[0])
            while line[at - 1].text == "*":
                at -= 1
            if len(names) > 1:
                self.continued = ends[at - 1] + len(line[at].before)

    def settle(self, end: int) -> None:
        """All have been found; those that are not in front of `end` are none."""
        self.sorted = sorted(at for at in self.ranks if at < end)

    def fold(self, begin: int, room: int, end: int) -> int:
        """Where a line that begins at a place is folded: in the fewest brackets, at the last of those in reach; where
        there is none, at the first beyond. 0: nowhere."""
        least, most = begin + _LEAST, begin + room
        wanted = min((at for at in self.wanted if begin < at <= most), default=0)
        if not wanted and end <= most:
            return 0
        first, last = (bisect_left(self.sorted, at) for at in (least, max(least, most + 1)))
        if wanted or first < last:
            at = wanted or min(self.sorted[first:last], key=lambda place: (*self.ranks[place][:2], -place))
        else:
            at = self.sorted[last] if last < len(self.sorted) else 0
        self.wanted |= {self.then.get(at, 0), self._behind(at)}
        return at

    def _behind(self, at: int) -> int:
        """What stands behind brackets that are folded begins a line."""
        opened = self.ranks[at].opened if at else 0
        if not opened or opened not in self.closed:
            return 0
        end, around = self.closed[opened]
        return next((at for at in self.sorted if at >= end and self.ranks[at].opened == around), 0)


def _is_call(line: Sequence[Token], at: int) -> bool:
    """Does a bracket that opens at a place hold arguments?"""
    before = line[at - 1].name if at else ""
    return line[at].text == "(" and bool(before) and before not in _STATEMENTS and not is_cast(line, closing(line, at))
