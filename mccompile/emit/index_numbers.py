"""The numbers in a C function that a variable of type mcc_index can stand for: sizes, strides and offsets.

C is read token by token, and types are those that it declares. A number counts where it is added to, multiplied or
compared with, or assigned to what is declared as mcc_index, and nothing of another type takes part: then the expression
has that type already. Invariant: no constant expression, literal of another type, argument of a macro, or converted
value is ever among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""(?P<skip>/\*.*?\*/|//[^\n]*|\#(?:\\\n|[^\n])*|\s+)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
    |(?P<name>[A-Za-z_]\w*)
    |(?P<sign><<=|>>=|\+\+|--|->|<<|>>|&&|\|\||[-+*/%&|^=!<>]=|.)""",
    re.VERBOSE | re.DOTALL,
)
_ENDS = {";", "{", "}", ","}
_BEFORE = {"const", "return", "else", "do", "case", "goto", "sizeof"}  # they declare no name behind them
_ASSIGN = {"=", "+=", "-=", "*=", "/=", "%="}
_COMPARE = {"<", ">", "<=", ">=", "==", "!=", "&&", "||", "!"}
_ARITHMETIC = {"+", "-", "*", "/", "%", "++", "--", "(", ")"}


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    start: int


def index_numbers(signature: str, body: str) -> list[tuple[int, int]]:
    """Where they begin and end in the body of the function."""
    tokens, names = list(_tokens(body)), _index_names([*_tokens(signature), *_tokens(body)])
    found = [number for piece, where in _pieces(tokens) for number in _of_piece(piece, where, names)]
    return sorted((token.start, token.start + len(token.text)) for token in found)


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "skip":
            yield _Token(str(match.lastgroup), match[0], match.start())


def _index_names(tokens: list[_Token]) -> set[str]:
    """What is declared as mcc_index, and nowhere as anything else."""
    names: set[str] = set()
    others: set[str] = set()
    listed = False  # in a declaration of several, whose first one is of that type
    depth = 0
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        depth += (token.text in ("(", "[")) - (token.text in (")", "]"))
        if token.text in (";", "{") or depth < 0:
            listed, depth = False, max(depth, 0)
        if token.kind != "name" or before is None:
            continue
        is_end = after is None or after.text in ("=", ",", ";", ")", "[")
        if before.text == "mcc_index" and is_end:
            (names if after is None or after.text != "[" else others).add(token.text)
            listed, depth = True, 0
        elif listed and depth == 0 and before.text == "," and is_end:
            names.add(token.text)
        elif before.kind == "name" and before.text not in _BEFORE:
            others.add(token.text)
        elif before.text == "*" and is_end and after is not None and after.text == "=":
            others.add(token.text)  # a pointer, if it is declared here
    return names - others


def _pieces(tokens: list[_Token]) -> Iterator[tuple[list[_Token], str]]:
    """Expressions without what stands in their subscripts and calls, which are expressions of their own; and where each
    stands: in a subscript, a condition, or elsewhere. What is static is left out."""
    stack: list[tuple[str, list[_Token]]] = [("", [])]
    opened: list[bool] = []  # by bracket: is it a grouping, whose contents belong to what is around it?
    for number, token in enumerate(tokens):
        where, piece = stack[-1]
        before = tokens[number - 1] if number else None
        if token.text in ("(", "["):
            if token.text == "(" and not (before is not None and before.kind == "name"):
                opened.append(True)
                piece.append(token)
                continue
            opened.append(False)
            control = before is not None and before.text in ("if", "while", "for")
            stack.append(("subscript" if token.text == "[" else "condition" if control else "argument", []))
        elif token.text in (")", "]") and opened:
            if opened.pop():
                piece.append(token)
                continue
            yield piece, where
            stack.pop()
            if where == "condition":  # a statement begins
                yield stack[-1][1], stack[-1][0]
                stack[-1] = stack[-1][0], []
        elif token.text in _ENDS:
            yield piece, where
            stack[-1] = where, []
        else:
            piece.append(token)
    yield from ((piece, where) for where, piece in stack)


def _is_cast(texts: list[str], place: int) -> bool:
    """Is that the type, or the operand, of a cast to an index?"""
    type = place if texts[place] == "mcc_index" else place - 2
    return type > 0 and texts[type - 1 : type + 2] == ["(", "mcc_index", ")"]


def _of_piece(piece: list[_Token], where: str, names: set[str]) -> list[_Token]:
    """The numbers of an expression, if it is one of indices only."""
    texts = [token.text for token in piece]
    while texts[:1] in (["const"], ["else"], ["do"]):
        piece, texts = piece[1:], texts[1:]
    if texts[:1] == ["mcc_index"]:
        piece, texts = piece[1:], texts[1:]
    if not names & set(texts):
        return []
    assigned = len(texts) > 1 and texts[0] in names and texts[1] in _ASSIGN
    allowed = set(_ARITHMETIC)
    if assigned or where in ("subscript", "condition"):
        allowed |= _COMPARE
    if assigned or where == "subscript":
        allowed |= {"?", ":"}
    for place, token in enumerate(piece):
        match token.kind:
            case "name" if token.text not in names and not _is_cast(texts, place):
                return []
            case "number" if not token.text.isdigit() or (token.text[0] == "0" and len(token.text) > 1):
                return []
            case "text":
                return []
            case "sign" if token.text not in allowed and not (assigned and place == 1):
                return []
    return [token for token in piece if token.kind == "number"]
