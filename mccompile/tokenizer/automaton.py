"""A regular expression as a table that is walked from character to character.

A state is a list of nodes in the order in which they are preferred; what stands behind a node where a match ends can
no longer be chosen. The next character tells both whether a match ends in front of it and how to go on, so looking
ahead by one character costs nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.records import dataclass
from . import characters
from .regex import Fork, Lookahead, Node, NotUnderstood, parsed

_MOST = 4000  # states


@dataclass(frozen=True)
class Automaton:
    pages: Sequence[int]  # of 256 code points: which row of `classes` they have
    classes: Sequence[int]
    moves: Sequence[int]  # by state, then class, the last of which is the end: 2 * next state + is this a match's end?
    count: int  # classes with the end

    def match(self, text: str, at: int) -> int:
        """Where the match ends that begins there; `at` if none does."""
        state, found = 1, at
        while state:
            end = at == len(text)
            code = 0 if end else ord(text[at])
            column = self.count - 1 if end else self.classes[self.pages[code >> 8] * 256 + (code & 255)]
            move = self.moves[state * self.count + column]
            found = at if move & 1 else found
            state, at = (0 if end else move >> 1), at + 1
        return found


def automaton(expression: str) -> Automaton:
    """Raises NotUnderstood."""
    nodes, begin = parsed(expression)
    parts = characters.classes(node.characters for node in nodes if not isinstance(node, Fork))
    states: dict[tuple[int, ...], int] = {(): 0, (begin,): 1}
    moves: list[int] = [0] * (len(parts) + 1)
    waiting: list[tuple[int, ...]] = [(begin,)]
    for state in waiting:
        for part in [*parts, 0]:
            then, ends = _moved(nodes, state, part)
            if state == (begin,) and ends:
                raise NotUnderstood("it matches no text at all")
            if then not in states:
                states[then] = len(states)
                waiting.append(then)
            moves.append(2 * states[then] + ends)
        if len(states) > _MOST:
            raise NotUnderstood("it is too long")
    pages, rows = _pages(parts)
    return Automaton(pages, rows, moves, len(parts) + 1)


def _moved(nodes: Sequence[Node], state: Sequence[int], part: int) -> tuple[tuple[int, ...], bool]:
    """The state behind a character of that class (0: the end), and whether a match ends in front of it."""
    waiting, seen, found = list(reversed(state)), set[int](), dict[int, None]()
    while waiting:
        number = waiting.pop()
        if number in seen:
            continue
        seen.add(number)
        node = nodes[number]
        if isinstance(node, Fork):
            if not node.ways:
                return tuple(found), True
            waiting += reversed(node.ways)
        elif isinstance(node, Lookahead):
            if node.at_end if part == 0 else node.characters & part:
                waiting.append(node.then)
        elif node.characters & part:
            found[node.then] = None
    return tuple(found), False


def _pages(parts: Sequence[int]) -> tuple[list[int], list[int]]:
    table = bytearray(characters.COUNT)
    for number, part in enumerate(parts[1:], 1):
        filled = characters.bits(part).translate(bytes([0, number]) + bytes(254))
        table = bytearray((int.from_bytes(table) | int.from_bytes(filled)).to_bytes(characters.COUNT))
    return in_pages(bytes(table))


def in_pages(table: bytes) -> tuple[list[int], list[int]]:
    """A table over all code points as a list of rows, and the rows there are."""
    rows: dict[bytes, int] = {}
    pages = [rows.setdefault(table[at : at + 256], len(rows)) for at in range(0, len(table), 256)]
    return pages, [value for row in rows for value in row]
