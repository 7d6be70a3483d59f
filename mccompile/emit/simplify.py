"""Simplifies a printed function: constant propagation of indexes that are 0, terms and factors that change nothing, and
arithmetic of literals (literals.py).

A loop that runs once becomes its body, a declaration `const mcc_index c = 0;` is not printed, and `x + (c * 16 + at)`
behind them becomes `x + at`; so do `+ 0`, `0 * 16` and `* 1` that templates print for the first of several.

Invariant: expressions keep their values, since only integers are written `0` and `1`.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import lru_cache

from .layout import Block
from .literals import FOLDED_AT, fold_literals, may_fold
from .tokens import (
    Token,
    closing,
    groups,
    is_binary,
    is_cast,
    names_read,
    operand_end,
    operand_start,
    printed,
    tokens,
    unwrap,
    words,
)

_LOOP = "for (mcc_index "
_LOOPS = ("for (", "while (", "do {")
_LEAVES = frozenset(("break", "continue"))


def simplify(block: Block, around: Set[str] = frozenset()) -> None:
    """Changes what is in a block; `around` are indexes of 0 in whose scope it stands."""
    zeros = set(around)
    inside: list[Block | str] = []
    comment = False
    for item in block.inside:
        if isinstance(item, Block):
            item.head = _simplified(item.head, zeros)
            counter = _runs_once(item)
            if counter:
                item.head = "{"
            simplify(item, zeros | counter)
            item.tail = _simplified(item.tail, zeros)
        elif not comment and not item.startswith("#"):
            item = _without_loop(_simplified(item, zeros), zeros)
            if name := _declared_zero(item):
                zeros.add(name)
                continue
        if isinstance(item, str):
            comment = (comment or item.startswith("/*")) and not item.endswith("*/")
        inside.append(item)
    block.inside = inside


def _runs_once(loop: Block) -> set[str]:
    """The counter of a loop that counts from 0, runs once and never ends early."""
    if not loop.head.startswith(_LOOP) or _leaves(loop):
        return set()
    return _counts_once(tokens(loop.head)[:-1])


def _counts_once(head: Sequence[Token]) -> set[str]:
    """The counter of a loop with this head, if it runs once."""
    match words(head):
        case ["for", "(", "mcc_index", counter, "=", "0", ";", same, "<", end, ";", *step, ")"] if same == counter:
            if end.isdecimal() and 0 < int(end) <= _step(step, counter):
                return {counter}
    return set()


def _step(step: Sequence[str], counter: str) -> int:
    """What the head of a loop adds to its counter; 0 if that is not known."""
    match step:
        case ["++", name] if name == counter:
            return 1
        case [name, "+=", number] if name == counter and number.isdecimal():
            return int(number)
    return 0


def _without_loop(line: str, zeros: Set[str]) -> str:
    """A line that is a loop and its body is the body, if the loop runs once."""
    while line.startswith(_LOOP) and line.endswith(";") and not _leaves_loop(line):
        found = tokens(line)
        body = closing(found, 1) + 1
        counter = _counts_once(found[:body])
        if not counter:
            break
        line = _simplified(printed(found[body:]).lstrip(), zeros | counter)
    return line


def _leaves(loop: Block) -> bool:
    """Does a line of it leave it? Those of loops inside leave these."""
    blocks = (item for item in loop.inside if isinstance(item, Block) and not item.head.startswith(_LOOPS))
    lines = (item for item in loop.inside if isinstance(item, str) and not item.startswith(_LOOPS))
    return any(map(_leaves_loop, lines)) or any(map(_leaves, blocks))


def _leaves_loop(line: str) -> bool:
    return not _LEAVES.isdisjoint(names_read(line))


def _declared_zero(line: str) -> str:
    """The index that a line declares as 0."""
    if not line.startswith("const mcc_index ") or "0" not in line:
        return ""
    declared = tokens(line)
    return declared[2].name if [token.text for token in declared[3:]] == ["=", "0", ";"] else ""


def _simplified(line: str, zeros: Set[str]) -> str:
    here = frozenset(name for name in zeros if name in line)
    return _propagated(line, here) if here or "0" in line or "1" in line or may_fold(line) else line


@lru_cache(maxsize=1 << 14)  # most lines of a template are the same in all functions that it prints
def _propagated(line: str, zeros: Set[str]) -> str:
    found = tokens(line)
    for place, token in enumerate(found):
        field = place > 0 and found[place - 1].text in (".", "->")
        if token.name in zeros and not field:
            found[place] = Token(token.before, "0")
    place = 0
    while place < len(found):
        text = found[place].text
        changed = (text == "0" and _fold_zero(found, place)) or (text == "1" and _fold_one(found, place))
        changed = changed or (text in FOLDED_AT and fold_literals(found, place))
        place = 0 if changed else place + 1
    return printed(found)


def _fold_zero(line: list[Token], at: int) -> bool:
    """Takes away what the zero at a place makes needless around it; False if that is nothing."""
    left, right = _around(line, at)
    if left == "*" and is_binary(line, at - 1):
        return _replace(line, _product_start(line, at - 1), at + 1)
    if right in ("*", "/", "%") and left not in ("~", "!"):
        return _replace(line, at, operand_end(line, at + 2))
    if left in ("", "/", "%", "~", "!") or is_cast(line, at - 1):
        return False
    if left in ("-", "+") and not is_binary(line, at - 1):
        return _replace(line, at - 1, at + 1)
    if left in ("-", "+") and right:
        return _cut(line, at - 1, at + 1)
    if left == "(" and right == ")" and groups(line, at - 1):
        return _replace(line, at - 1, at + 2)
    if right == "+":
        return _cut(line, at, at + 2, line[at].before)
    if right == "-" and at + 2 < len(line):
        line[at + 2] = line[at + 2]._replace(before="")
        return _cut(line, at, at + 1, line[at].before)
    return False


def _fold_one(line: list[Token], at: int) -> bool:
    """The same of the one at a place."""
    left, right = _around(line, at)
    if left == "%":
        return _replace(line, _product_start(line, at - 1), at + 1)
    if left in ("*", "/") and right and is_binary(line, at - 1):
        return _cut(line, at - 1, at + 1)
    if right == "*" and left not in ("", "/", "%", "~", "!") and not is_cast(line, at - 1):
        return _cut(line, at, at + 2, line[at].before)
    return False


def _around(line: list[Token], at: int) -> tuple[str, str]:
    return line[at - 1].text if at else "", line[at + 1].text if at + 1 < len(line) else ""


def _product_start(line: list[Token], at: int) -> int:
    """Where the product begins whose operator is at a place."""
    start = operand_start(line, at - 1)
    while start > 1 and line[start - 1].text in ("*", "/", "%") and is_binary(line, start - 1):
        start = operand_start(line, start - 2)
    return start


def _replace(line: list[Token], begin: int, end: int) -> bool:
    """Zero instead of tokens, where both places are in the line."""
    if begin < 0 or end < 0:
        return False
    line[begin:end] = [Token(line[begin].before, "0")]
    return True


def _cut(line: list[Token], begin: int, end: int, before: str | None = None) -> bool:
    """Takes tokens away; what follows stands behind `before`, where that is given."""
    if end >= len(line):
        return False
    if before is not None:
        line[end] = line[end]._replace(before=before)
    del line[begin:end]
    unwrap(line, begin) or unwrap(line, begin - 1)
    return True
