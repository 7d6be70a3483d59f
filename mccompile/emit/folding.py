"""Long lines of generated C are folded, so that it reads in an editor and in a review.

Where, whoever builds the text says by marks (base/marked.py): lists, sums and comments have them, literals and
directives of the preprocessor do not. Statements whose commas have no marks are folded behind these. Invariant: only
blanks and ends of lines change.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import field

from ..base.marked import BEHIND_BRACKET, CLOSES, COMMA, OPENS, OPERATOR, WORD, plain
from ..base.records import dataclass, replace
from .tokens import with_lists

WIDTH = 120
_STEP = 4  # columns that a continued line is indented by
_LEAST = 8  # columns of code that a fold leaves on a line at least
_RANKS = {COMMA: 0, WORD: 0, OPERATOR: 1}


def folded(text: str) -> str:
    return "\n".join(piece for line in text.split("\n") for piece in _pieces(line))


def _pieces(line: str) -> Iterator[str]:
    bare = plain(line)
    if len(bare) <= WIDTH or bare.startswith("#"):
        yield bare
        return
    if COMMA not in line and WORD not in line and "//" not in bare and not bare.lstrip().startswith(("/*", "*")):
        line = with_lists(line)
    if len(bare) == len(line):
        yield bare
        return
    places = _Places.of(line)
    begin = len(bare) - len(bare.lstrip())
    first = bare[:begin]
    code, comment = first + " " * _STEP, f"{first}* " if bare.lstrip().startswith("*") else f"{first} * "
    while len(first) + len(bare) - begin > WIDTH and (at := places.fold(begin + _LEAST, begin + WIDTH - len(first))):
        yield (first + bare[begin:at]).rstrip()
        first = comment if at in places.words else code
        begin = at + len(bare[at:]) - len(bare[at:].lstrip())
    yield first + bare[begin:]


@dataclass
class _Places:
    """Where a line may be folded: at blanks, each in so many lists and sums, and behind brackets."""

    ranks: dict[int, tuple[int, int]] = field(default_factory=dict)
    words: set[int] = field(default_factory=set)
    brackets: list[int] = field(default_factory=list)
    blanks: list[int] = field(default_factory=list)

    @staticmethod
    def of(line: str) -> _Places:
        found, depth, at = _Places(), 0, 0
        for letter in line:
            if letter in _RANKS:
                found.ranks[at] = depth, _RANKS[letter]
                if letter == WORD:
                    found.words.add(at)
            elif letter == BEHIND_BRACKET:
                found.brackets.append(at)
            elif letter in (OPENS, CLOSES):
                depth += 1 if letter == OPENS else -1
            else:
                at += 1
        return replace(found, blanks=[*found.ranks])

    def fold(self, least: int, most: int) -> int:
        """At a blank in the fewest lists, rather behind a comma than at an operator, the last of those in reach; where
        there is none, behind the last bracket in reach, and else at the first blank beyond. 0 if there is none: what
        is before `least` makes no line shorter."""
        begin, end = (bisect_left(self.blanks, at) for at in (least, max(least, most + 1)))
        if begin < end:
            return min(self.blanks[begin:end], key=lambda place: (*self.ranks[place], -place))
        bracket = bisect_right(self.brackets, most) - 1
        if bracket >= 0 and self.brackets[bracket] >= least:
            return self.brackets[bracket]
        return self.blanks[end] if end < len(self.blanks) else 0
