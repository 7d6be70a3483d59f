"""How long functions of generated C are: none is too long to be read."""

from __future__ import annotations

from collections.abc import Iterator

LONGEST = 300  # lines of any function of a kernel: one of 24 points, where there are 32 registers, is the longest
LONGEST_OF_HALVES = 300  # with floats of 16 bits


def functions(text: str) -> Iterator[tuple[str, int]]:
    """Names, or what stands in front of the bracket, and lines."""
    before, begin = "", 0
    for number, line in enumerate(text.splitlines()):
        if line == "{":
            begin, name = number, before
        elif line == "}" and begin:
            yield name, number - begin + 1
        before = line


def too_long(text: str, most: int = LONGEST) -> dict[str, int]:
    return {name: lines for name, lines in functions(text) if lines > most}
