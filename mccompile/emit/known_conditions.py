"""Conditions of a printed function that its indexes decide are not printed: those that always hold go, and so does what
stands behind those that never do.

Counters of loops are followed with the values that they take (index_values.py), one by one where the body of a loop
steps its own counter, as loops over tiles do. Invariant: what is printed does the same for every input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import cast

from .index_values import MOST, Scope
from .layout import ENDS, Block
from .tokens import ASSIGNS, Token, closing, names_read, printed, split, tokens

_LEAVES = frozenset(("continue", "goto"))
_DECLARES = "const mcc_index "
_DECIDES = "const mcc_bool "
_COUNTS = "for (mcc_index "


def without_known_conditions(top: Block, known: Scope | None = None) -> None:
    """Changes what is in a block. `known`: what is known of what its function is handed. Functions of which the
    preprocessor chooses parts stay as they are."""
    if not _any(top, _is_conditional) or _any(top, lambda line: line.startswith("#")):
        return
    _fold(top, known or Scope())


def _any(block: Block, told: Callable[[str], object]) -> bool:
    """Is it told of a line?"""
    blocks = (item for item in block.inside if isinstance(item, Block))
    lines = (item for item in block.inside if isinstance(item, str))
    return any(map(told, (block.head, *lines, block.tail))) or any(_any(each, told) for each in blocks)


def _is_conditional(line: str) -> bool:
    return "?" in line or "if (" in line


def _leaves(line: str) -> bool:
    return not _LEAVES.isdisjoint(names_read(line))


def _fold(block: Block, scope: Scope) -> None:
    inside: list[Block | str] = []
    items = [*block.inside]
    comment = goes_on = False
    while items:
        item = items.pop(0)
        if isinstance(item, Block):
            goes_on = False
            before = scope
            scope = scope.without(*_assigned(item))
            if not _is_if(item.head):
                inside.append(_folded_block(item, before))
                continue
            chain = _chained(item, items)
            scope = before.without(*(name for block in chain for name in _assigned(block)))
            inside += _decided(chain, before)
            continue
        if not comment and not item.startswith("/*"):
            begins, goes_on = not goes_on, not item.endswith(ENDS)
            if begins and not goes_on:
                item = _line(item, scope.without(*_declared(item)) if item.startswith("for (") else scope)
            scope = _behind(item, scope)
        comment = (comment or item.startswith("/*")) and not item.endswith("*/")
        if item:
            inside.append(item)
    block.inside = inside


def _is_if(head: str) -> bool:
    return head.startswith("if (")


def _folded_block(block: Block, scope: Scope) -> Block:
    """A loop, or any other block that is not a condition."""
    inside = scope.without(*_assigned(block), *_declared(block.head))
    if block.head.startswith(_COUNTS):
        inside = _counting(block, scope, inside)
    _fold(block, inside)
    return block


def _counting(loop: Block, around: Scope, inside: Scope) -> Scope:
    """With the values of the counter of a loop, if these are known."""
    head = tokens(loop.head)
    end = closing(head, 1)
    parts = split(head[2:end], ";")
    if len(parts) != 3 or len(parts[0]) < 4 or parts[0][2].text != "=":
        return inside
    name = parts[0][1].name
    first, ends = around.values(parts[0][3:]), parts[1]
    if not first or len(ends) < 3 or ends[0].name != name or ends[1].text not in ("<", "<="):
        return inside
    fixed = around.without(name, *_assigned(loop))
    bounds = frozenset(bound + (ends[1].text == "<=") for bound in fixed.values(ends[2:]) or ())
    step, own = _step(parts[2], name, fixed), name in _assigned(Block("", loop.inside))
    if not bounds or max(bounds) - min(first) > MOST or (own and step) or (step > 1 and len(first) > 1):
        return inside
    if step:
        return inside.counting(name, frozenset(range(min(first), max(bounds), step)))
    visited: set[int] = set()
    left = {*first}
    while left:
        value = left.pop()
        if value >= max(bounds) or value in visited:
            continue
        visited.add(value)
        by = _steps(loop.inside, name, inside.counting(name, frozenset({value})))
        if not by or min(by) < 1:
            return inside
        left |= {value + each for each in by}
    return inside.counting(name, frozenset(visited))


def _step(part: Sequence[Token], name: str, scope: Scope) -> int:
    """What the head of a loop adds to its counter; 0 if nothing, or nothing that is known."""
    words = [token.name or token.text for token in part]
    if words == ["++", name]:
        return 1
    by = scope.values(part[2:]) if words[:2] == [name, "+="] else None
    return max(0, *by) if by and len(by) == 1 else 0


def _steps(items: Sequence[Block | str], name: str, scope: Scope) -> set[int]:
    """What the lines of a body may add to a counter that has one value; nothing if that is not known."""
    found, left = {0}, [*items]
    while left:
        item = left.pop(0)
        if isinstance(item, Block):
            changes = name in _assigned(item)
            if _is_if(item.head):
                own = _steps_of(_chained(item, left), name, scope)
            else:
                own = set() if changes or _any(item, _leaves) else {0}
            if not own or (found != {0} and own != {0}):
                return set()
            found = own if own != {0} else found
        elif name in _assigned_by(item) or _leaves(item):
            words = [token.name or token.text for token in tokens(item)]
            if found != {0} or len(words) != 4 or words[:2] != [name, "+="] or not words[2].isdecimal():
                return set()
            found = {int(words[2])}
            scope = scope.without(name)
        else:
            scope = _behind(item, scope)
    return found


def _steps_of(chain: Sequence[Block], name: str, scope: Scope) -> set[int]:
    """The same of a condition and what else there is."""
    found: set[int] = set()
    for block in chain:
        condition = _condition(block.head)
        holds = True if condition is None else scope.truth(condition)
        if holds is not False:
            own = _steps(block.inside, name, scope)
            if not own:
                return set()
            found |= own
        if holds:
            return found
    return found | {0}


def _chained(first: Block, behind: list[Block | str]) -> list[Block]:
    """A condition and what else there is behind it, which is taken from `behind`."""
    chain = [first]
    while not chain[-1].tail and behind and isinstance(behind[0], Block) and behind[0].head.startswith("} else"):
        chain.append(cast(Block, behind.pop(0)))
    return chain


def _decided(chain: Sequence[Block], scope: Scope) -> list[Block]:
    """What is left of a condition and what else there is."""
    kept: list[Block] = []
    for block in chain:
        words = tokens(block.head)
        condition = _condition(block.head)
        known = True if condition is None else folded_condition(condition, scope)
        inside = scope if condition is None else scope.where(condition, True)
        if condition is not None:
            scope = scope.where(condition, False)
        if known is False:
            continue
        _fold(block, inside)
        kept.append(block)
        if known is True:
            block.head = "} else {" if len(kept) > 1 else "{"
            break
        begin = next(at for at, token in enumerate(words) if token.text == "(")
        rest = printed([words[begin], *known, *words[closing(words, begin) :]])
        block.head = ("} else if " if len(kept) > 1 else "if ") + rest.strip()
    for block in kept:
        block.tail = "" if block is not kept[-1] else "}"
    return kept


def _condition(head: str) -> list[Token] | None:
    """That of a block, if it has one."""
    words = tokens(head)
    begin = next((at for at, token in enumerate(words) if token.text == "("), None)
    return words[begin + 1 : closing(words, begin)] if begin is not None and "if (" in head else None


def folded_condition(condition: Sequence[Token], scope: Scope) -> list[Token] | bool:
    """A condition without the parts that are known where those in front of them have not decided it."""
    operator = "||" if len(split(condition, "||")) > 1 else "&&"
    decides = operator == "||"
    kept: list[list[Token]] = []
    for part in split(condition, operator):
        known = scope.truth(part)
        if known is decides:
            return decides
        if known is None:
            kept.append(part)
        scope = scope.where(part, not decides)
    if not kept:
        return not decides
    if len(kept) == len(split(condition, operator)):
        return [*condition]
    first, *others = kept
    joined = [first[0]._replace(before=condition[0].before), *first[1:]]
    for part in others:
        joined += [Token(" ", operator), *part]
    return joined


def _line(line: str, scope: Scope) -> str:
    """A line whose known choices are made."""
    if line.startswith("if (") and line.endswith(";"):
        words = tokens(line)
        end = closing(words, 1)
        known = folded_condition(words[2:end], scope)
        if known is True:
            return _line(printed(words[end + 1 :]).strip(), scope)
        if known is False:
            return ""
        return _line_of(printed([*words[:2], *known, *words[end:]]), scope)
    return _line_of(line, scope)


def _line_of(line: str, scope: Scope) -> str:
    if line.startswith(_DECIDES) and line.endswith(";") and "?" not in line:
        return _decisions(line, scope)
    if "?" not in line or not (scope.counters or scope.constants):
        return line
    words = tokens(line)
    at = len(words)
    while at > 0:
        at = min(at, len(words)) - 1
        if words[at].text == "?":
            _choose(words, at, scope)
    return printed(words)


def _decisions(line: str, scope: Scope) -> str:
    """A declaration of conditions, which are 0 or 1 where they are known."""
    words = tokens(line)
    made = words[:2]
    for part in split(words[2:-1], ","):
        is_given = len(part) > 2 and part[0].name and part[1].text == "="
        known = folded_condition(part[2:], scope) if is_given else part[2:]
        made += [*part[:2], *([Token(" ", str(int(known)))] if isinstance(known, bool) else known), Token("", ",")]
    return printed([*made[:-1], words[-1]])


def _choose(words: list[Token], at: int, scope: Scope) -> None:
    """Makes the choice whose question mark stands at a place, or shortens its condition."""
    begin = _begin(words, at)
    colon = _end(words, at + 1, (":",))
    end = _end(words, colon + 1, (",", ";", ":"))
    known = folded_condition(words[begin:at], scope)
    if known is True or known is False:
        chosen = words[at + 1 : colon] if known else words[colon + 1 : end]
        words[begin:end] = [chosen[0]._replace(before=words[begin].before), *chosen[1:]]
    else:
        words[begin:at] = [known[0]._replace(before=words[begin].before), *known[1:]]


def _begin(words: Sequence[Token], at: int) -> int:
    """Where the condition begins whose question mark stands at a place."""
    depth = 0
    for place in range(at - 1, -1, -1):
        text = words[place].text
        depth += (text in (")", "]")) - (text in ("(", "["))
        if depth < 0 or (not depth and text in ("=", "+=", "-=", ",", ";", "?", ":", "{", "return")):
            return place + 1
    return 0


def _end(words: Sequence[Token], at: int, ends: Sequence[str]) -> int:
    """Where an operand of a choice ends."""
    depth = choices = 0
    for place in range(at, len(words)):
        text = words[place].text
        depth += (text in ("(", "[")) - (text in (")", "]"))
        if depth < 0 or (not depth and not choices and text in ends):
            return place
        if not depth:
            choices += (text == "?") - (text == ":")
    return len(words)


def _behind(line: str, scope: Scope) -> Scope:
    """What is known behind a line."""
    scope = scope.without(*_assigned_by(line), *_declared(line))
    if not line.startswith((_DECLARES, _DECIDES)) or not line.endswith(";"):
        return scope
    for part in split(tokens(line)[2:-1], ","):
        is_known = line.startswith(_DECLARES) or (len(part) == 3 and part[2].text.isdecimal())
        if is_known and len(part) > 2 and part[0].name and part[1].text == "=":
            scope = scope.declaring(part[0].name, part[2:])
    return scope


def _assigned(block: Block) -> set[str]:
    """Names that lines of a block change."""
    found = {*_assigned_by(block.tail), *_assigned_by(block.head)}
    if block.head.startswith(_COUNTS):  # its counter is its own
        found.discard(tokens(block.head)[3].name)
    for item in block.inside:
        found |= _assigned(item) if isinstance(item, Block) else _assigned_by(item)
    return found


@lru_cache(maxsize=1 << 14)  # lines of a template are the same in many functions
def _assigned_by(line: str) -> frozenset[str]:
    words = tokens(line)
    names = set()
    for at, token in enumerate(words):
        behind = words[at + 1].text if at + 1 < len(words) else ""
        front = words[at - 1].text if at else ""
        if token.name and front not in (".", "->") and (behind in ASSIGNS or front in ("++", "--", "&")):
            names.add(token.name)
    return frozenset(names)


@lru_cache(maxsize=1 << 14)
def _declared(line: str) -> frozenset[str]:
    """Names that may be declared in a line."""
    words = tokens(line)
    many = len(words) > 1 and bool(words[0].name) and (bool(words[1].name) or words[1].text == "*")
    between = ("*", ",") if many else ()
    named = ((before, token) for before, token in pairwise(words) if token.name)
    return frozenset(token.name for before, token in named if before.name or before.text in between)
