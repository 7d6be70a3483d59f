"""From a pattern to the smallest automaton over bytes of UTF-8 that accepts the same texts.

Invariant: state 0 has no way out and does not accept; state 1 is where a text begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np

from ...base.records import dataclass
from ..api import Unsupported
from .patterns import BEGIN, END, NO_WORD_EDGE, WORD, WORD_EDGE, Characters, Choice, Edge, Pattern, Repeat, Sequence_

MOST_STATES = 4096
_MOST_STEPS = 200_000  # of the automaton that states are made from
_SIZES = ((0, 0x7F), (0x80, 0x7FF), (0x800, 0xD7FF), (0xE000, 0xFFFF), (0x10000, 0x10FFFF))  # by bytes in UTF-8
_FREE = "free"


@dataclass(frozen=True)
class Automaton:
    classes: np.ndarray  # u8 [256]: the column of each byte
    next: np.ndarray  # u16 [states, columns]
    accepts: np.ndarray  # bool [states]


def automaton(pattern: Pattern) -> Automaton:
    steps = _Steps()
    start, end = steps.new(), steps.new()
    steps.add(pattern, start, end)
    columns = steps.columns()
    table, accepts = _determined(steps, start, end, [column[0] for column in columns])
    table, accepts = _smallest(table, accepts)
    classes = np.zeros(256, np.uint8)
    wanted: dict[tuple[int, ...], int] = {}
    for number, column in enumerate(columns):
        classes[list(column)] = wanted.setdefault(tuple(row[number] for row in table), len(wanted))
    return Automaton(classes, np.array(list(wanted), np.uint16).T.copy(), np.array(accepts))


def byte_sequences(low: int, high: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """The code points from low to high as ranges of bytes in UTF-8, one after the other."""
    for first, last in _SIZES:
        a, b = max(low, first), min(high, last)
        if a <= b:
            yield from _split(a, b)


def _split(low: int, high: int) -> Iterator[tuple[tuple[int, int], ...]]:
    begin, end = chr(low).encode(), chr(high).encode()
    for tail in range(1, len(begin)):
        rest = (1 << 6 * tail) - 1
        if low & ~rest != high & ~rest:
            if low & rest:
                yield from _split(low, low | rest)
                yield from _split((low | rest) + 1, high)
                return
            if high & rest != rest:
                yield from _split(low, (high & ~rest) - 1)
                yield from _split(high & ~rest, high)
                return
    yield tuple(zip(begin, end, strict=True))


class _Steps:
    """An automaton that may be in several places at once: steps over bytes, and free ones."""

    def __init__(self) -> None:
        self.free: list[list[tuple[str, int]]] = []  # by place: condition, place
        self.bytes: list[list[tuple[int, int, int]]] = []  # by place: from, to, place
        self.minds_words = False

    def new(self) -> int:
        self.free.append([])
        self.bytes.append([])
        if len(self.free) > _MOST_STEPS:
            raise Unsupported("the pattern is too large", "repeat less often")
        return len(self.free) - 1

    def add(self, pattern: Pattern, start: int, end: int) -> None:
        match pattern:
            case Characters(ranges):
                for low, high in ranges:
                    for sequence in byte_sequences(low, high):
                        self.chain(sequence, start, end)
            case Sequence_(parts):
                for part in parts[:-1]:
                    middle = self.new()
                    self.add(part, start, middle)
                    start = middle
                if parts:
                    self.add(parts[-1], start, end)
                else:
                    self.free[start].append((_FREE, end))
            case Choice(parts):
                for part in parts:
                    inner = self.new()
                    self.free[start].append((_FREE, inner))
                    self.add(part, inner, end)
            case Edge(kind):
                self.free[start].append((kind, end))
                self.minds_words |= kind in (WORD_EDGE, NO_WORD_EDGE)
            case Repeat():
                self.repeat(pattern, start, end)

    def chain(self, sequence: tuple[tuple[int, int], ...], start: int, end: int) -> None:
        for low, high in sequence[:-1]:
            middle = self.new()
            self.bytes[start].append((low, high, middle))
            start = middle
        self.bytes[start].append((*sequence[-1], end))

    def repeat(self, pattern: Repeat, start: int, end: int) -> None:
        for _ in range(pattern.least):
            middle = self.new()
            self.add(pattern.part, start, middle)
            start = middle
        if pattern.most is None:
            inner, back = self.new(), self.new()
            self.free[start].append((_FREE, inner))
            self.add(pattern.part, inner, back)
            self.free[back].append((_FREE, inner))
            self.free[inner].append((_FREE, end))
            return
        for _ in range(pattern.most - pattern.least):
            inner, middle = self.new(), self.new()
            self.free[start] += [(_FREE, inner), (_FREE, end)]
            self.add(pattern.part, inner, middle)
            start = middle
        self.free[start].append((_FREE, end))

    def columns(self) -> list[tuple[int, ...]]:
        """Bytes that no step tells apart."""
        cuts = {0, 256, *(cut for low, high in WORD if self.minds_words for cut in (low, high + 1))}
        for steps in self.bytes:
            for low, high, _ in steps:
                cuts |= {low, high + 1}
        edges = sorted(cuts)
        return [tuple(range(a, b)) for a, b in pairwise(edges)]

    def reached(self, places: Iterable[int], conditions: set[str]) -> frozenset[int]:
        """Those places, and where free steps lead from them under the conditions."""
        found = set(places)
        waiting = list(found)
        while waiting:
            for condition, place in self.free[waiting.pop()]:
                if place not in found and (condition == _FREE or condition in conditions):
                    found.add(place)
                    waiting.append(place)
        return frozenset(found)


@dataclass(frozen=True)
class _State:
    """Where the automaton may be behind a character, and what is known of that character."""

    places: frozenset[int]
    is_first: bool = False  # there was none
    is_word: bool = False  # it was one of a word; only where that matters


def _determined(steps: _Steps, start: int, end: int, values: list[int]) -> tuple[list[list[int]], list[bool]]:
    """The table of states that know where they are, by one byte of each column."""
    numbers = {_State(frozenset()): 0, _State(frozenset([start]), is_first=True): 1}
    table: list[list[int]] = []
    accepts: list[bool] = []
    waiting = list(numbers)
    for state in waiting:  # grows as it is walked
        row = []
        for byte in values:
            is_word = steps.minds_words and any(low <= byte <= high for low, high in WORD)
            before = steps.reached(state.places, _conditions(state, is_word))
            after = {to for place in before for low, high, to in steps.bytes[place] if low <= byte <= high}
            key = _State(steps.reached(after, set()), is_word=is_word and bool(after))
            if key not in numbers:
                numbers[key] = len(numbers)
                waiting.append(key)
                if len(numbers) > MOST_STATES:
                    raise Unsupported(f"the pattern takes more than {MOST_STATES} states", "make it simpler")
            row.append(numbers[key])
        table.append(row)
        accepts.append(end in steps.reached(state.places, {END, *_conditions(state, is_word=False)}))
    return table, accepts


def _conditions(state: _State, is_word: bool) -> set[str]:
    """What holds between the last character and the next one."""
    edge = WORD_EDGE if state.is_word != is_word else NO_WORD_EDGE
    return {edge, BEGIN} if state.is_first else {edge}


def _smallest(table: list[list[int]], accepts: list[bool]) -> tuple[list[list[int]], list[bool]]:
    """States that no text tells apart become one; state 1 stays what it is."""
    group = [int(accept) for accept in accepts]
    while True:
        names: dict[tuple[int, ...], int] = {}
        refined = [names.setdefault((group[s], *(group[t] for t in row)), len(names)) for s, row in enumerate(table)]
        if len(names) == len(set(group)):
            break
        group = refined
    order = {group[0]: 0}
    if group[1] == group[0]:
        return [[0] * len(table[0])] * 2, [False, False]
    order[group[1]] = 1
    for number in group:
        order.setdefault(number, len(order))
    rows = [[0]] * len(order)
    found = [False] * len(order)
    for state, row in enumerate(table):
        rows[order[group[state]]] = [order[group[to]] for to in row]
        found[order[group[state]]] = accepts[state]
    return rows, found
