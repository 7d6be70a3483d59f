"""Long lines of generated C are folded, so that it reads in an editor and in a review.

Invariant: only blanks and ends of lines change, and only between tokens: never in a literal nor in a directive of the
preprocessor.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

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
    indent = " " * (len(line) - len(line.lstrip()) + _STEP)
    lines = []
    while len(line) > WIDTH and (at := _fold(line)):
        lines.append(line[:at])
        line = indent + line[at:].lstrip()
    return [*lines, line]


def _fold(line: str) -> int:
    """Where to fold: at a blank in the fewest brackets, rather behind a comma than at an operator, the last of those
    that leave the line short enough; where there is none, behind the last bracket that does."""
    masked = _ATOM.sub(lambda found: "x" * len(found[0]), line)
    depths = []
    depth = 0
    for letter in masked:
        depth += (letter in "([{") - (letter in ")]}")
        depths.append(depth)
    least = len(line) - len(line.lstrip()) + _LEAST
    places = {found.start(): 1 for found in _OPERATOR.finditer(masked)}
    places |= {found.start(): 0 for found in _SEPARATOR.finditer(masked)}
    places = {place: rank for place, rank in places.items() if place >= least}  # others make no line shorter
    fitting = [place for place in places if place <= WIDTH]
    if not fitting:
        opening = [found.end() for found in _CALL.finditer(masked) if least <= found.end() <= WIDTH]
        return max(opening, default=min((place for place in places if place > WIDTH), default=0))
    return min(fitting, key=lambda place: (depths[place], places[place], -place))
