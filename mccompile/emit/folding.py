"""Long lines of generated C are folded, so that it reads in an editor and in a review.

Invariant: only blanks change, and only between tokens: never in a literal nor in a directive of the preprocessor.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

WIDTH = 120
_STEP = 4  # columns that a continued line is indented by
_LEAST = 8  # columns of code that a fold leaves on a line at least

_ATOM = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|/\*.*?\*/')
_OPERATOR = re.compile(r" (?=(?:[-+*/%&|^?:]|&&|\|\||<<|>>) )")
_AFTER = re.compile(r"(?<=[,;=]) ")


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
        line = indent + line[at + 1 :]
    return [*lines, line]


def _fold(line: str) -> int:
    """The blank to fold at: one in the fewest brackets, the last of those that leave the line short enough."""
    masked = _ATOM.sub(lambda found: "x" * len(found[0]), line)
    depths = []
    depth = 0
    for letter in masked:
        depth += (letter in "([{") - (letter in ")]}")
        depths.append(depth)
    least = len(line) - len(line.lstrip()) + _LEAST
    places = [m.start() for pattern in (_AFTER, _OPERATOR) for m in pattern.finditer(masked)]
    fitting = [place for place in places if least <= place <= WIDTH]
    beyond = min((place for place in places if place > WIDTH), default=0)
    return min(fitting, key=lambda place: (depths[place], -place), default=beyond)
