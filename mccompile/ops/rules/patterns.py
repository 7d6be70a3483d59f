"""Regular expressions in the syntax of RE2, read into a tree over sets of code points.

Groups, lazy repetition and names do not matter to what matches as a whole, so they leave no trace. What no finite
automaton can say, or goes line by line, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from ...base.records import dataclass
from ..api import Invalid, Unsupported

Ranges = tuple[tuple[int, int], ...]  # of code points, ascending, apart from each other
LAST = 0x10FFFF
BEGIN, END, WORD_EDGE, NO_WORD_EDGE = EDGES = "begin", "end", "word edge", "no word edge"
MOST_REPEATS = 1000
MOST_GROUPS = 50
_CASED = 0x2000  # letters with two cases are looked for below this


@dataclass(frozen=True)
class Characters:
    ranges: Ranges


@dataclass(frozen=True)
class Sequence_:
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Choice:
    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Repeat:
    part: Pattern
    least: int
    most: int | None


@dataclass(frozen=True)
class Edge:
    """A place between characters: one of EDGES."""

    kind: str


Pattern = Characters | Sequence_ | Choice | Repeat | Edge


@dataclass(frozen=True)
class _Flags:
    ignore_case: bool = False
    dot_all: bool = False


_DIGIT: Ranges = ((48, 57),)
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_PERL = {"d": _DIGIT, "s": _SPACE, "w": WORD}
_POSIX: dict[str, Ranges] = {
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "alpha": ((65, 90), (97, 122)),
    "ascii": ((0, 127),),
    "blank": ((9, 9), (32, 32)),
    "cntrl": ((0, 31), (127, 127)),
    "digit": _DIGIT,
    "graph": ((33, 126),),
    "lower": ((97, 122),),
    "print": ((32, 126),),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "space": ((9, 13), (32, 32)),
    "upper": ((65, 90),),
    "word": WORD,
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_ESCAPES = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_NOT_REGULAR = {
    "C": "single bytes (\\C)",
    "p": "Unicode classes (\\p)",
    "P": "Unicode classes (\\P)",
}


def read(pattern: str) -> Pattern:
    """The tree of a pattern."""
    return _Reader(pattern).run()


def union(ranges: Sequence[tuple[int, int]]) -> Ranges:
    found: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    found, start = [], 0
    for low, high in ranges:
        if low > start:
            found.append((start, low - 1))
        start = high + 1
    return (*found, (start, LAST)) if start <= LAST else tuple(found)


def both_cases(ranges: Ranges) -> Ranges:
    more = list(ranges)
    for low, high in ranges:
        for code in range(low, min(high, _CASED) + 1):
            more += [(ord(c), ord(c)) for c in (chr(code).lower(), chr(code).upper()) if len(c) == 1]
    return union(more)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.flags = _Flags()
        self.depth = 0

    def run(self) -> Pattern:
        found = self.choice()
        if self.at < len(self.text):
            raise self.wrong("a ) has no (")
        return found

    def wrong(self, why: str) -> Invalid:
        return Invalid(f"pattern {self.text!r}, at {self.at}: {why}")

    def take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def next(self) -> str:
        if self.at >= len(self.text):
            raise self.wrong("it ends too early")
        self.at += 1
        return self.text[self.at - 1]

    def choice(self) -> Pattern:
        flags, parts = self.flags, [self.sequence()]
        while self.take("|"):
            parts.append(self.sequence())
        self.flags = flags  # those set inside of a group hold to its end
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def sequence(self) -> Pattern:
        parts: list[Pattern] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            if self.take("\\Q"):
                quoted, _, _ = self.text[self.at :].partition("\\E")
                self.at = min(len(self.text), self.at + len(quoted) + 2)
                parts += [self.characters(((ord(c), ord(c)),)) for c in quoted]
                if quoted:
                    parts.append(self.repeated(parts.pop()))
            else:
                parts.append(self.repeated(self.item()))
        return parts[0] if len(parts) == 1 else Sequence_(tuple(parts))

    def characters(self, ranges: Ranges) -> Characters:
        return Characters(both_cases(ranges) if self.flags.ignore_case else ranges)

    def repeated(self, part: Pattern) -> Pattern:
        counts = self.counts()
        if counts is None:
            return part
        self.take("?")  # lazy: the same texts match
        if self.counts() is not None:
            raise self.wrong("one repetition follows another")
        least, most = counts
        if max(least, most or 0) > MOST_REPEATS or (most is not None and most < least):
            raise self.wrong(f"it repeats from {least} to {most} times")
        return Repeat(part, least, most)

    def counts(self) -> tuple[int, int | None] | None:
        for sign, counts in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return counts
        end = self.text.find("}", self.at)
        if not self.text.startswith("{", self.at) or end < 0:
            return None
        low, comma, high = self.text[self.at + 1 : end].partition(",")
        if not low.isdecimal() or (high and not high.isdecimal()):
            return None  # a brace that stands for itself
        self.at = end + 1
        return int(low), int(high) if high else None if comma else int(low)

    def item(self) -> Pattern:
        char = self.next()
        match char:
            case "(":
                return self.group()
            case "[":
                return self.characters(self.bracket())
            case ".":
                return Characters(((0, LAST),) if self.flags.dot_all else complement(((10, 10),)))
            case "^" | "$":
                return Edge(END if char == "$" else BEGIN)
            case "*" | "+" | "?":
                raise self.wrong("there is nothing to repeat")
            case "\\":
                for letter, kind in zip("AzbB", EDGES, strict=True):
                    if self.take(letter):
                        return Edge(kind)
                return self.characters(self.escape())
        return self.characters(((ord(char), ord(char)),))

    def group(self) -> Pattern:
        before = self.flags
        self.depth += 1
        if self.depth > MOST_GROUPS:
            raise Unsupported(f"more than {MOST_GROUPS} groups lie one in another")
        named = re.compile(r"\?P?<(?![=!])").match(self.text, self.at)
        if named:
            self.at = self.text.find(">", self.at) + 1
            if self.at == 0:
                raise self.wrong("a name of a group does not end")
        elif self.take("?"):
            if any(self.text.startswith(sign, self.at) for sign in ("=", "!", "<", "P=")):
                raise Unsupported(f"pattern {self.text!r} looks around or back", "RE2 has no such patterns either")
            if self.set_flags():
                self.depth -= 1
                return Sequence_(())
        inside = self.choice()
        if not self.take(")"):
            raise self.wrong("a ( has no )")
        self.flags = before
        self.depth -= 1
        return inside

    def set_flags(self) -> bool:
        """Flags in front of a group, or (true) on their own, for all that follows."""
        value = True
        while (char := self.next()) not in ":)":
            match char:
                case "-":
                    value = False
                case "i":
                    self.flags = replace(self.flags, ignore_case=value)
                case "s":
                    self.flags = replace(self.flags, dot_all=value)
                case "U":
                    pass  # greedy or not, the same texts match
                case "m":
                    raise Unsupported(f"pattern {self.text!r} matches line by line", "leave out the flag m")
                case _:
                    raise self.wrong(f"there is no flag {char}")
        return char == ")"

    def escape(self) -> Ranges:
        """What follows a backslash."""
        char = self.next()
        if char in _NOT_REGULAR:
            raise Unsupported(f"{_NOT_REGULAR[char]} in pattern {self.text!r}", "write the characters as a class")
        if char.lower() in _PERL:
            ranges = _PERL[char.lower()]
            return complement(ranges) if char.isupper() else ranges
        code = self.code_after(char)
        return ((code, code),)

    def code_after(self, char: str) -> int:
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char == "x":
            digits = self.text[self.at : self.at + 2]
            if self.take("{"):
                digits, _, _ = self.text[self.at :].partition("}")
                self.at += 1
            self.at += len(digits)
            try:
                code = int(digits, 16)
            except ValueError:
                code = LAST + 1
            if code > LAST:
                raise self.wrong(f"\\x{digits} is not a character")
            return code
        octal = char
        while len(octal) < 3 and self.at < len(self.text) and self.text[self.at] in "01234567":
            octal += self.next()
        if char in "01234567" and (char == "0" or len(octal) > 1):
            return int(octal, 8)
        if char.isalnum():
            raise self.wrong(f"\\{char} means nothing")
        self.at -= len(octal) - 1
        return ord(char)

    def bracket(self) -> Ranges:
        negated = self.take("^")
        found: list[tuple[int, int]] = []
        first = True
        while first or not self.take("]"):
            first = False
            if self.take("[:"):
                found += self.posix()
                continue
            low = self.member()
            if isinstance(low, tuple):
                found += low
                continue
            high = low
            if self.text.startswith("-", self.at) and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                end = self.member()
                if isinstance(end, tuple) or end < low:
                    raise self.wrong("a range of characters runs backwards")
                high = end
            found.append((low, high))
        ranges = union(found)
        if self.flags.ignore_case:
            ranges = both_cases(ranges)
        return complement(ranges) if negated else ranges

    def member(self) -> int | Ranges:
        char = self.next()
        if char != "\\":
            return ord(char)
        ranges = self.escape()
        return ranges[0][0] if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else ranges

    def posix(self) -> Ranges:
        name, end, _ = self.text[self.at :].partition(":]")
        negated, name = name.startswith("^"), name.removeprefix("^")
        if not end or name not in _POSIX:
            raise self.wrong(f"there is no class [:{name}:]")
        self.at += len(name) + negated + 2
        return complement(_POSIX[name]) if negated else _POSIX[name]
