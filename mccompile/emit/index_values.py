"""The values that indexes of a printed function can have: counters of loops with known ends, and what is declared as an
expression of them.

Invariant: sets of values are never too small; what is not understood has no set, and decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from itertools import product
from math import prod

from ..base.records import dataclass
from .tokens import Token

MOST = 1 << 12  # values, or combinations of them, that are looked at
_RANKS = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<": 4, ">": 4, "<=": 4, ">=": 4, "+": 5, "-": 5, "*": 6, "/": 6, "%": 6}

Values = frozenset[int]
_Indexes = Mapping[str, int]
_Computed = Callable[[_Indexes], "int | None"]  # None: not known


@dataclass(frozen=True)
class Expression:
    of: _Computed
    names: frozenset[str]


@dataclass(frozen=True)
class Scope:
    """What is known of indexes where a line stands."""

    counters: Mapping[str, Values] = field(default_factory=dict)
    constants: Mapping[str, Expression] = field(default_factory=dict)  # of counters alone, or of what nothing is known

    def without(self, *names: str) -> Scope:
        """Where these names mean something else."""
        gone = {*names}
        if not gone & {*self.counters, *self.constants, *(each for c in self.constants.values() for each in c.names)}:
            return self
        kept = {name: e for name, e in self.constants.items() if name not in gone and not gone & e.names}
        return Scope({name: values for name, values in self.counters.items() if name not in gone}, kept)

    def counting(self, name: str, values: Values) -> Scope:
        rest = self.without(name)
        return Scope({**rest.counters, name: values}, rest.constants)

    def declaring(self, name: str, text: Sequence[Token]) -> Scope:
        found, rest = self.expression(text), self.without(name)
        if found is None or name in found.names:
            return rest
        return Scope(rest.counters, {**rest.constants, name: found})

    def expression(self, text: Sequence[Token]) -> Expression | None:
        """In terms of counters."""
        parsed = _parsed(tuple(token.text if not token.name else token.name for token in text))
        if parsed is None:
            return None
        inner = {name: self.constants[name] for name in parsed.names if name in self.constants}
        if not inner:
            return parsed

        def of(indexes: _Indexes) -> int | None:
            known = {name: value for name, e in inner.items() if (value := e.of(indexes)) is not None}
            return parsed.of({**indexes, **known})

        return Expression(of, (parsed.names - {*inner}).union(*(e.names for e in inner.values())))

    def values(self, text: Sequence[Token]) -> Values | None:
        """All that an expression can be."""
        found = self.expression(text)
        results = {*self._results(found)} if found else set()
        return None if not results or None in results else frozenset(each for each in results if each is not None)

    def truth(self, condition: Sequence[Token]) -> bool | None:
        """Whether it always holds, or never does."""
        found = self.expression(condition)
        seen: set[bool] = set()
        for result in self._results(found) if found else ():
            if result is None or len(seen | {bool(result)}) > 1:
                return None
            seen.add(bool(result))
        return seen.pop() if seen else None

    def where(self, condition: Sequence[Token], holds: bool) -> Scope:
        """Where a condition holds, or does not."""
        found = self.expression(condition)
        names = [name for name in found.names if name in self.counters] if found else []
        if found is None or len(names) != 1:
            return self
        name = names[0]
        kept = (v for v in self.counters[name] if (result := found.of({name: v})) is None or bool(result) is holds)
        return Scope({**self.counters, name: frozenset(kept)}, self.constants)

    def _results(self, found: Expression) -> Iterator[int | None]:
        names = [name for name in found.names if name in self.counters]
        if prod(len(self.counters[name]) for name in names) > MOST:
            yield None
            return
        for values in product(*(sorted(self.counters[name]) for name in names)):
            yield found.of(dict(zip(names, values, strict=True)))


def called_for(pieces: frozenset[tuple[int, int]]) -> Scope:
    """What is known in a function that is called for these rows, `begin` to `end`."""
    ends = dict(pieces)
    counters = {"begin": frozenset(ends)} if ends else {}
    if len(ends) != len(pieces):  # several ends of one begin
        return Scope({**counters, "end": frozenset(end for _, end in pieces)})
    end = Expression(lambda indexes: ends.get(indexes.get("begin", -1)), frozenset({"begin"}))
    return Scope(counters, {"end": end} if ends else {})


@lru_cache(maxsize=1 << 13)
def _parsed(words: tuple[str, ...]) -> Expression | None:
    """An expression of integers and names alone."""
    if not words:
        return None
    left = [*words]
    found = _conditional(left)
    if found is None or left:
        return None
    names = frozenset(word for word in words if word.isidentifier())
    return Expression(found, names)


def _conditional(left: list[str]) -> _Computed | None:
    condition = _binary(left, 1)
    if condition is None or not left or left[0] != "?":
        return condition
    del left[0]
    then = _conditional(left)
    if then is None or not left or left.pop(0) != ":":
        return None
    other = _conditional(left)
    return None if other is None else _choice(condition, then, other)


def _choice(condition: _Computed, then: _Computed, other: _Computed) -> _Computed:
    def of(indexes: _Indexes) -> int | None:
        chosen = condition(indexes)
        return None if chosen is None else (then if chosen else other)(indexes)

    return of


def _binary(left: list[str], rank: int) -> _Computed | None:
    found = _unary(left)
    while found is not None and left and (own := _RANKS.get(left[0], 0)) >= rank:
        operator = left.pop(0)
        other = _binary(left, own + 1)
        found = None if other is None else _operation(operator, found, other)
    return found


def _unary(left: list[str]) -> _Computed | None:
    word = left.pop(0) if left else ""
    if word == "(":
        found = _conditional(left)
        return found if left and left.pop(0) == ")" else None
    if word in ("-", "!"):
        inner = _unary(left)
        return None if inner is None else _negated(word, inner)
    if word.isdecimal():
        value = int(word)
        return lambda _: value
    return (lambda indexes: indexes.get(word)) if word.isidentifier() else None


def _negated(operator: str, inner: _Computed) -> _Computed:
    def of(indexes: _Indexes) -> int | None:
        value = inner(indexes)
        return None if value is None else (-value if operator == "-" else int(not value))

    return of


def _operation(operator: str, first: _Computed, second: _Computed) -> _Computed:
    if operator in ("&&", "||"):
        return _both(operator == "&&", first, second)
    compute = _OPERATIONS[operator]

    def of(indexes: _Indexes) -> int | None:
        a, b = first(indexes), second(indexes)
        return None if a is None or b is None else compute(a, b)

    return of


def _both(both: bool, first: _Computed, second: _Computed) -> _Computed:
    def of(indexes: _Indexes) -> int | None:
        found = [None if value is None else bool(value) for value in (first(indexes), second(indexes))]
        if (not both) in found:
            return int(not both)
        return None if None in found else int(both)

    return of


def _divided(a: int, b: int) -> int | None:
    return (abs(a) // abs(b) if (a < 0) == (b < 0) else -(abs(a) // abs(b))) if b else None


def _remainder(a: int, b: int) -> int | None:
    quotient = _divided(a, b)
    return None if quotient is None else a - quotient * b


_OPERATIONS: dict[str, Callable[[int, int], int | None]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": _divided,
    "%": _remainder,
    "==": lambda a, b: int(a == b),
    "!=": lambda a, b: int(a != b),
    "<": lambda a, b: int(a < b),
    ">": lambda a, b: int(a > b),
    "<=": lambda a, b: int(a <= b),
    ">=": lambda a, b: int(a >= b),
}
