"""Long lines of generated C are folded, so that it reads in an editor and in a review.

Invariant: only blanks and ends of lines change, and only between tokens: never in a literal nor in a directive of the
preprocessor.
"""

from __future__ import annotations

import re
import textwrap
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

WIDTH = 120
_STEP = 4  # columns that a continued line is indented by
_LEAST = 8  # columns of code that a fold leaves on a line at least

_ATOM = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?\*/')
_SEPARATOR = re.compile(r"(?<=[,;]) ")
_CALL = re.compile(r"\w\((?!\))")
_OPERATOR = re.compile(r" (?=(?:[-+*/%&|^?:]|&&|\|\||<<|>>) )|(?<==) ")


def folded(text: str) -> str:
    return "\n".join(piece for line in _with_state(text) for piece in line) + ("\n" if text.endswith("\n") else "")


def _with_state(text: str) -> Iterator[list[str]]:
    inside = directive = False  # a comment of several lines; a directive continued by a backslash
    for line in text.removesuffix("\n").split("\n"):
        bare = line.lstrip()
        fixed = directive or (bare.startswith("#") and not inside)
        directive = fixed and line.endswith("\\")
        rest = _ATOM.sub("", line) if not inside else line
        opens, closes = not inside and "/*" in rest, inside and "*/" in rest
        if len(line) <= WIDTH or fixed:
            yield [line]
        elif inside or bare.startswith("/*"):
            yield _comment(line, inside)
        else:
            yield [line] if opens else _code(line)
        inside = (inside or opens) and not closes


def _comment(line: str, inside: bool) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    first = indent if not inside else ""
    further = (indent if not inside else indent[:-1]) + " * "
    words = line.strip() if not inside else line
    return textwrap.wrap(
        words,
        WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def _code(line: str) -> list[str]:
    begin = len(line) - len(line.lstrip())
    first, further = line[:begin], " " * (begin + _STEP)
    places = _Places(line)
    lines = []
    while len(first) + len(line) - begin > WIDTH and (at := places.fold(begin + _LEAST, begin + WIDTH - len(first))):
        lines.append(first + line[begin:at])
        first = further
        begin = next((place for place in range(at, len(line)) if line[place] != " "), len(line))
    return [*lines, first + line[begin:]]


class _Places:
    """Where a line of code may be folded, and in how many brackets."""

    def __init__(self, line: str) -> None:
        masked = _ATOM.sub(lambda found: "x" * len(found[0]), line)
        steps = ((letter in "([{") - (letter in ")]}") for letter in masked)
        self.depths = list(accumulate(steps))
        self.ranks = {found.start(): 1 for found in _OPERATOR.finditer(masked)}
        self.ranks |= {found.start(): 0 for found in _SEPARATOR.finditer(masked)}
        self.blanks = sorted(self.ranks)
        self.brackets = [found.end() for found in _CALL.finditer(masked)]

    def fold(self, least: int, most: int) -> int:
        """At a blank in the fewest brackets, rather behind a comma than at an operator, the last of those in reach;
        where there is none, behind the last bracket in reach, and else at the first blank beyond. 0 if there is none:
        what is before `least` makes no line shorter."""
        begin, end = (bisect_left(self.blanks, at) for at in (least, max(least, most + 1)))
        if begin < end:
            fitting = self.blanks[begin:end]
            return min(fitting, key=lambda place: (self.depths[place], self.ranks[place], -place))
        bracket = bisect_right(self.brackets, most) - 1
        if bracket >= 0 and self.brackets[bracket] >= least:
            return self.brackets[bracket]
        return self.blanks[end] if end < len(self.blanks) else 0
