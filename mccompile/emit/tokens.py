"""The tokens of a line of C that templates have filled in, with what stands in front of each: blanks, and the marks of
base/marked.py that print nothing. Names may be marked or not.

Only lines are read, and only for the questions of the passes over a printed function: which names they read, and which
terms an index that is 0 takes away. Literals, comments and the scopes of parts are one token each.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import lru_cache
from typing import NamedTuple

_MARKS = "\ue003\ue009"  # of functions, and of where comments may be folded
_BLANKS = rf"(?:[\s{_MARKS}]|\ue000header\ue001[^\ue002]*\ue002)*"
_WHOLE = r"""\ue00a[^\ue00a]*\ue00a | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*' | /\*(?s:.*?)(?:\*/|$)"""
_NUMBER = r"\.?\d(?:[eEpP][-+]|[\w.])*"
_TOKEN = re.compile(
    rf"""(?P<before>{_BLANKS})
    (?P<text>{_WHOLE} | \ue000(?P<kind>\w+)\ue001(?P<piece>[^\ue002]*)\ue002 | (?P<name>[A-Za-z_]\w*) | {_NUMBER}
    | ->|\+\+|--|<<=?|>>=?|[-+*/%&|^!<>=]=|&&|\|\||.)""",
    re.VERBOSE,
)
_NAMES = re.compile(  # and whatever else a name might be found in
    rf"""{_WHOLE} | {_NUMBER}
    | (?P<field>(?:\.|->){_BLANKS})?(?:\ue000name\ue001(?P<marked>[^\ue002]*)\ue002 | (?P<name>[A-Za-z_]\w*))
    | \ue000\w+\ue001[^\ue002]*\ue002""",
    re.VERBOSE,
)
_TYPES = frozenset(("const", "volatile", "void", "_Bool", "bool", "signed", "unsigned", "char", "short", "int", "long"))
_TYPES |= {"float", "double", "mcc_index", "_Float16"}
_KEYWORDS = {"return", "case", "else", "do"}  # what a unary operator may follow
ASSIGNS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "<<=", ">>=", "&=", "|=", "^=", "++", "--"))


class Token(NamedTuple):
    before: str
    text: str
    name: str = ""  # of an identifier

    @property
    def ends_operand(self) -> bool:
        return bool(self.name and self.name not in _KEYWORDS) or self.text in (")", "]") or self.is_literal

    @property
    def is_literal(self) -> bool:
        return self.text[0] in "\"'" or self.text.lstrip(".")[:1].isdecimal() or self.text.startswith("\ue000size")

    @property
    def starts_operand(self) -> bool:
        return bool(self.name) or self.is_literal or self.text == "("


def tokens(line: str) -> list[Token]:
    return [*_tokens(line)]


@lru_cache(maxsize=1 << 14)  # each pass over a function reads the lines that the one before it left as they were
def _tokens(line: str) -> tuple[Token, ...]:
    found = []
    for match in _TOKEN.finditer(line):
        before, text, kind, piece, name = match.groups()
        if kind == "name":
            text, name = (text, piece) if piece.isidentifier() else (piece, None)
        found.append(Token(before, text, name or ""))
    return tuple(found)


def printed(line: Sequence[Token]) -> str:
    """As a line of C: signs that were left beside each other stay two."""
    text = "".join([f"{token.before}{token.text}" for token in line])
    if "--" not in text and "++" not in text:
        return text
    pairs = zip([Token("", ""), *line], line, strict=False)
    return "".join(
        [
            f"{now.before or ' ' * (now.text in ('-', '+') and before.text == now.text)}{now.text}"
            for before, now in pairs
        ]
    )


@lru_cache(maxsize=1 << 14)  # most lines of a template are the same in all functions that it prints
def names_read(line: str) -> frozenset[str]:
    """Names that are not fields of structs. What a declaration declares is among them."""
    return frozenset([name for match in _NAMES.finditer(line) if not match["field"] and (name := _name(match))])


def through_pointers(text: str, names: Set[str]) -> str:
    """Text in which these names are pointers to what they were."""
    if not names:
        return text

    def replaced(match: re.Match[str]) -> str:
        return f"(*{_name(match)})" if _name(match) in names and not match["field"] else match[0]

    return _NAMES.sub(replaced, text)


def _name(match: re.Match[str]) -> str:
    name = match["marked"] or match["name"] or ""
    return name if name.isidentifier() else ""


def words(line: Sequence[Token]) -> list[str]:
    """What each token says, without marks."""
    return [token.name or token.text for token in line]


def split(line: Sequence[Token], by: str) -> list[list[Token]]:
    """At tokens that stand in no brackets."""
    found: list[list[Token]] = [[]]
    depth = 0
    for token in line:
        depth += (token.text in ("(", "[", "{")) - (token.text in (")", "]", "}"))
        if not depth and token.text == by:
            found.append([])
        else:
            found[-1].append(token)
    return found


def closing(line: Sequence[Token], at: int) -> int:
    """Where the bracket at a place is closed; the length of the line if it is not."""
    depth = 0
    for place in range(at, len(line)):
        depth += (line[place].text in ("(", "[")) - (line[place].text in (")", "]"))
        if not depth:
            return place
    return len(line)


def opening(line: Sequence[Token], at: int) -> int:
    """Where the bracket that closes at a place is opened; -1 if it is not."""
    depth = 0
    for place in range(at, -1, -1):
        depth += (line[place].text in (")", "]")) - (line[place].text in ("(", "["))
        if not depth:
            return place
    return -1


def is_cast(line: Sequence[Token], at: int) -> bool:
    """Does the bracket that closes at a place hold a type? One that a later line closes does not."""
    if at >= len(line):
        return False
    inside = line[opening(line, at) + 1 : at]
    return line[at].text == ")" and bool(inside) and all(token.text == "*" or is_type(token.text) for token in inside)


def is_type(word: str) -> bool:
    """A word of a type: `const`, `int32_t`, `mcc_f32x8`."""
    is_vector = word.startswith("mcc_") and word.rpartition("x")[2].isdecimal()
    return is_vector or word in _TYPES or word.endswith("_t")


def is_binary(line: Sequence[Token], at: int) -> bool:
    """Has the operator at a place an operand on its left?"""
    return at > 0 and line[at - 1].ends_operand and not is_cast(line, at - 1)


def operand_end(line: Sequence[Token], at: int) -> int:
    """Behind the operand that begins at a place; -1 if the line ends before."""
    while at < len(line) and (line[at].text in "-+!~&*" or (line[at].text == "(" and is_cast(line, closing(line, at)))):
        at = closing(line, at) + 1
    if at >= len(line) or not line[at].starts_operand:
        return -1
    at = closing(line, at) + 1
    while at < len(line) and line[at].text in ("[", "(", ".", "->"):
        at = at + 2 if line[at].text in (".", "->") else closing(line, at) + 1
    return at if at <= len(line) else -1


def operand_start(line: Sequence[Token], at: int) -> int:
    """Where the operand begins that ends at a place; -1 if it does in front of the line."""
    while at >= 0:
        at = opening(line, at)
        if at > 0 and line[at].text in ("(", "[") and line[at - 1].ends_operand and not is_cast(line, at - 1):
            at -= 1
        elif at > 1 and line[at - 1].text in (".", "->"):
            at -= 2
        else:
            break
    while at > 0 and (is_cast(line, at - 1) or (line[at - 1].text in ("-", "!", "~") and not is_binary(line, at - 1))):
        at = opening(line, at - 1)
    return at


def groups(line: list[Token], at: int) -> bool:
    """Is the bracket at a place neither that of a call or statement nor of a cast? A sign without a space in front
    belongs to what is cast: `(my_type)-3`."""
    behind = line[closing(line, at) + 1 :][:1]
    cast = any(token.starts_operand or (token.text in ("-", "+", "*", "&") and not token.before) for token in behind)
    return not (at > 0 and line[at - 1].ends_operand) and not cast


def unwrap(line: list[Token], at: int) -> bool:
    """Takes the brackets around a name or number away."""
    if not 0 < at < len(line) - 1 or (line[at - 1].text, line[at + 1].text) != ("(", ")"):
        return False
    if not (line[at].name or line[at].is_literal) or not groups(line, at - 1):
        return False
    line[at] = line[at]._replace(before=line[at - 1].before)
    del line[at + 1], line[at - 1]
    return True
