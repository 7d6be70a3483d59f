"""Regular expressions of tokenizers: their text as a network of nodes.

Alternatives are tried from left to right and repetitions take as much as they can. It is understood as Oniguruma does,
which the library `tokenizers` asks: `$` stands at the end of a line, and `{1,3}+` repeats a repetition. What else
dialects understand differently is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import NoReturn

from ..base.records import dataclass
from . import characters

_ESCAPED = {"r": "\r", "n": "\n", "t": "\t", "f": "\f", "v": "\v"}
_MOST = 1000  # nodes
_BUILD = Callable[[int], int]  # from the node behind it to the node where it begins


@dataclass(frozen=True)
class Step:
    """One character of a set, and the node behind it."""

    characters: int
    then: int


@dataclass
class Fork:
    """Nodes to go on with, the preferred one first; none: a match ends here."""

    ways: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Lookahead:
    """Goes on where the next character is in a set, or at the end of the text if `at_end`."""

    characters: int
    at_end: bool
    then: int


Node = Step | Fork | Lookahead


class NotUnderstood(Exception):
    """Something of an expression, in its own words."""


class _Parser:
    def __init__(self, text: str) -> None:
        self.text, self.at, self.any_case = text, 0, False
        self.nodes: list[Node] = [Fork()]

    def node(self, node: Node) -> int:
        if len(self.nodes) == _MOST:
            raise NotUnderstood("it is too long")
        self.nodes.append(node)
        return len(self.nodes) - 1

    def refuse(self, begin: int) -> NoReturn:
        raise NotUnderstood(f"{self.text[begin : self.at + 4]!r} at character {begin}")

    def takes(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def alternatives(self) -> _BUILD:
        ways = [self.sequence()]
        while self.takes("|"):
            ways.append(self.sequence())
        return ways[0] if len(ways) == 1 else lambda then: self.node(Fork([way(then) for way in ways]))

    def sequence(self) -> _BUILD:
        parts: list[_BUILD] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            parts.append(self.repeated())

        def build(then: int) -> int:
            for part in reversed(parts):
                then = part(then)
            return then

        return build

    def repeated(self) -> _BUILD:
        (part, own), begin = self.atom(), self.at
        if self.takes("?"):
            least, most = 0, 1
        elif self.takes("*"):
            least, most = 0, -1
        elif self.takes("+"):
            least, most = 1, -1
        elif self.takes("{"):
            least, most = self.counts(begin)
            if least and self.takes("+"):
                return self.ended(begin, lambda then: self.repetition(self.some(part, least, most), 1, -1, then))
        else:
            return part
        if self.text[self.at - 1] != "}" and own and self.takes("+"):
            return self.ended(begin, self.possessive(part, own, least, most))
        return self.ended(begin, self.some(part, least, most))

    def some(self, part: _BUILD, least: int, most: int) -> _BUILD:
        return lambda then: self.repetition(part, least, most, then)

    def ended(self, begin: int, made: _BUILD) -> _BUILD:
        if self.text[self.at : self.at + 1] in ("?", "+", "*", "{"):
            self.refuse(begin)
        return made

    def possessive(self, part: _BUILD, own: int, least: int, most: int) -> _BUILD:
        """Nothing is given back: it ends only where no other one of the set comes."""

        def build(then: int) -> int:
            over = self.node(Lookahead(characters.ALL & ~own, True, then))
            if most == 1:
                return self.node(Fork([part(then), over]))
            return self.repetition(part, least, most, over)

        return build

    def counts(self, begin: int) -> tuple[int, int]:
        inside, closed, _ = self.text[self.at :].partition("}")
        low, comma, high = inside.partition(",")
        if not closed or not low.isdecimal() or (not (high.isdecimal() or (comma and not high)) and comma):
            self.refuse(begin)
        self.at += len(inside) + 1
        return int(low), int(high) if high else -1 if comma else int(low)

    def repetition(self, part: _BUILD, least: int, most: int, then: int) -> int:
        if most < 0:
            loop = Fork()
            begin = self.node(loop)
            loop.ways = [part(begin), then]
            then = begin
        for _ in range(most - least):
            then = self.node(Fork([part(then), then]))
        for _ in range(least):
            then = part(then)
        return then

    def atom(self) -> tuple[_BUILD, int]:
        """What is repeated, and its characters where it is one."""
        begin = self.at
        if self.takes("(?!") or self.takes("(?="):
            return self.look(begin, negative=self.text[self.at - 1] == "!"), 0
        if self.takes("$"):
            return lambda then: self.node(Lookahead(1 << ord("\n"), True, then)), 0
        if self.takes("(?:") or self.takes("(?i:"):
            outside, self.any_case = self.any_case, self.any_case or self.text[self.at - 2] == "i"
            inside = self.alternatives()
            self.any_case = outside
            if not self.takes(")"):
                self.refuse(begin)
            return inside, 0
        if self.text[begin] in "().^*+?{":
            self.refuse(begin)
        found = self.character_set()
        return lambda then: self.node(Step(found, then)), found

    def look(self, begin: int, negative: bool) -> _BUILD:
        found = self.character_set()
        if not self.takes(")"):
            self.refuse(begin)
        wanted = characters.ALL & ~found if negative else found
        return lambda then: self.node(Lookahead(wanted, negative, then))

    def character_set(self) -> int:
        if not self.takes("["):
            return self.single()[0]
        begin, negative, found = self.at, self.takes("^"), 0
        while not self.takes("]"):
            if self.at >= len(self.text) or self.text[self.at] == "[" or self.text.startswith("&&", self.at):
                self.refuse(begin)
            part, first = self.single()
            if first and self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] != "]":
                self.at += 1
                last = self.single()[1]
                if not last or self.any_case or last < first:
                    self.refuse(begin)
                part = characters.between(ord(first), ord(last))
            found |= part
        return characters.ALL & ~found if negative else found

    def single(self) -> tuple[int, str]:
        """A set, and the character that it is, if it is one."""
        begin = self.at
        if self.at >= len(self.text):
            self.refuse(begin)
        character = self.text[self.at]
        self.at += 1
        if character == "\\":
            return self.escape(begin)
        found = characters.in_any_case(character) if self.any_case else 1 << ord(character)
        return found, character

    def escape(self, begin: int) -> tuple[int, str]:
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        if letter in ("p", "P") and self.takes("{"):
            name, _, _ = self.text[self.at :].partition("}")
            self.at += len(name) + 1
            if not 1 <= len(name) <= 2 or name[0] not in "LMNPSZC" or not (found := characters.category(name)):
                self.refuse(begin)
            return found if letter == "p" else characters.ALL & ~found, ""
        if letter in ("s", "S", "d", "D"):
            found = characters.spaces() if letter in "sS" else characters.category("Nd")
            return found if letter.islower() else characters.ALL & ~found, ""
        if letter in _ESCAPED:
            return 1 << ord(_ESCAPED[letter]), _ESCAPED[letter]
        if not letter or letter.isalnum():
            self.refuse(begin)
        return 1 << ord(letter), letter


def parsed(text: str) -> tuple[list[Node], int]:
    """Nodes, of which the first is where a match ends, and the one where it begins. Raises NotUnderstood."""
    parser = _Parser(text)
    begin = parser.alternatives()(0)
    if parser.at != len(text):
        parser.refuse(parser.at)
    return parser.nodes, begin
