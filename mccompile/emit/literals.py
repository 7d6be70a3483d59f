"""Constant folding in a line of C: sums and products of integer literals, and brackets around literals and names.

Templates print the place of an element as a sum of products, of which some are known: `p * 72 + 6 * 8 + 16`.

Invariant: expressions keep their values. Literals of floats have a point, and a product is folded at its beginning
alone, so what rounds, or is cut off, does so in the same place.
"""

from __future__ import annotations

import re

from .tokens import Token, groups, is_binary, is_cast, unwrap

LARGEST = (1 << 31) - 1
_NAME = "(?:\ue000name\ue001)?\\w+\ue002?"
_CANDIDATE = re.compile(rf"\d\W*[-+*/%]\W*\d|\(\W*-\W*\d|(?<![\w\ue002])\({_NAME}\)")
_PRODUCTS = ("*", "/", "%")
FOLDED_AT = frozenset(("(", "+", "-", *_PRODUCTS))
_BINDS = frozenset((*_PRODUCTS, "~", "!", ")"))  # the last is that of a cast


def may_fold(line: str) -> bool:
    """False where nothing is to be folded for sure."""
    return _CANDIDATE.search(line) is not None


def fold_literals(line: list[Token], at: int) -> bool:
    """Folds the literals around the operator at a place, or the brackets that open there; False if that is nothing."""
    text = line[at].text
    if text == "(":
        return _without_brackets(line, at) or _alone(line, at)
    if text not in FOLDED_AT or not 0 < at < len(line) - 1:
        return False
    if not line[at - 1].text.isdecimal() or not line[at + 1].text.isdecimal():
        return False
    front = line[at - 2].text if at > 1 else ""
    if front in _BINDS or (front in ("+", "-") and not is_binary(line, at - 2) and _is_bound(line, at - 2)):
        return False
    left, right = int(line[at - 1].text), int(line[at + 1].text)
    return _product(line, at, left, right) if text in _PRODUCTS else _sum(line, at, left, right, front)


def _is_bound(line: list[Token], sign: int) -> bool:
    """Does what stands in front of a sign belong to the literal behind it: `x * -3 + 2`, `y - -3 + 2`?"""
    return sign > 0 and line[sign - 1].text in (*_BINDS, "+", "-")


def _product(line: list[Token], at: int, left: int, right: int) -> bool:
    text = line[at].text
    if text != "*" and not right:
        return False
    value = left * right if text == "*" else left // right if text == "/" else left % right
    if value > LARGEST:
        return False
    _replace(line, at - 1, at + 2, [str(value)])
    unwrap(line, at - 1)
    return True


def _sum(line: list[Token], at: int, left: int, right: int, front: str) -> bool:
    if at + 2 < len(line) and line[at + 2].text in _PRODUCTS:
        return False
    value = (-left if front == "-" else left) + (right if line[at].text == "+" else -right)
    if abs(value) > LARGEST:
        return False
    signed = ["-"] if value < 0 else []
    if front in ("+", "-") and is_binary(line, at - 2):
        line[at - 2] = Token(line[at - 2].before, *(signed or ["+"]))
        _replace(line, at - 1, at + 2, [str(abs(value))])
        return True
    begin = at - 2 if front == "-" else at - 1
    _replace(line, begin, at + 2, [*signed, str(abs(value))])
    unwrap(line, begin)
    return True


def _without_brackets(line: list[Token], at: int) -> bool:
    """`(-8)` where no sign or factor stands in front of it; a sign becomes the other one."""
    texts = [token.text for token in line[at + 1 : at + 4]]
    if len(texts) < 3 or texts[0] != "-" or not texts[1].isdecimal() or texts[2] != ")" or not groups(line, at):
        return False
    front = line[at - 1].text if at else ""
    if front in _BINDS or (front in ("+", "-") and not is_binary(line, at - 1)):
        return False
    if front in ("+", "-"):
        line[at - 1] = Token(line[at - 1].before, "+" if front == "-" else "-")
        _replace(line, at, at + 4, [texts[1]])
    else:
        _replace(line, at, at + 4, texts[:2])
    return True


def _alone(line: list[Token], at: int) -> bool:
    """Takes the brackets around a name or number away, behind a cast as well."""
    if at + 2 >= len(line) or line[at + 2].text != ")" or not (line[at + 1].name or line[at + 1].is_literal):
        return False
    if is_cast(line, at + 2):
        return False
    if at == 0 or not is_cast(line, at - 1):
        return unwrap(line, at + 1)
    if at + 3 < len(line) and line[at + 3].text in ("[", "(", ".", "->"):
        return False
    line[at : at + 3] = [line[at + 1]._replace(before=line[at].before)]
    return True


def _replace(line: list[Token], begin: int, end: int, texts: list[str]) -> None:
    """These tokens instead of others."""
    line[begin:end] = [Token(line[begin].before, texts[0]), *(Token("", text) for text in texts[1:])]
