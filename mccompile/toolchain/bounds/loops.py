"""Turns of a loop that do the same: one is followed for all of them.

In this turn, what the loop moves (counters, pointers, words that it counts in) grows with the number of the turn, from
what it was in the first one. If each is one step further at the end, and everything else is as it was, then all turns
do the same, as long as what compares values that grow is decided in the same way.
"""

from __future__ import annotations

from .values import LEVELS, OBJECTS, OPPOSITE, TURNS, WORD, Flags, holds, signed

ENDLESS = 1 << 40
_TRUE = {"eq": (0, 1), "cs": (0, ENDLESS), "hs": (0, ENDLESS), "ge": (0, ENDLESS)}  # of a difference
_TRUE |= {"hi": (1, ENDLESS), "gt": (1, ENDLESS), "mi": (-ENDLESS, 0)}
_UNSIGNED, _SIGNED, _ANY = (0, 1 << 32), (-(1 << 31), 1 << 31), (-ENDLESS, ENDLESS)


class Trial:
    """A turn that is followed for all."""

    def __init__(self, outer: Trial | None) -> None:
        self.outer = outer
        self.level: int = outer.level + 1 if outer else 0
        self.place = TURNS + 64 * self.level  # of the bits that say how much a value grows
        self.decided: list[tuple[str, tuple[str, int, int], bool]] = []

    @property
    def is_possible(self) -> bool:
        return self.level < LEVELS

    def growing(self, start: int, step: int) -> int:
        return start | step << self.place

    def step(self, value: int) -> int:
        return signed(value >> self.place & WORD)

    def started(self, value: int) -> int:
        """What it is in the first turn."""
        return value & ~(WORD << self.place)

    def holds(self, condition: str, flags: Flags) -> bool | None:
        found = holds(condition, flags)
        if found is not None or flags is None:
            return found
        kind, a, b = flags
        if a is None or (b is None and kind != "is"):
            return None
        b = b or 0
        first = (kind, self.started(a), self.started(b))
        found = self.outer.holds(condition, first) if self.outer else holds(condition, first)
        if found is not None and first != (kind, a, b):
            self.decided.append((condition, (kind, a, b), found))
        return found

    def turns(self) -> int:
        """How many at least decide everything as the first one does."""
        most = ENDLESS
        for condition, (kind, a, b), found in self.decided:
            steps = (self.step(a), self.step(b))
            most = min(most, _same(condition, kind, (self.started(a), self.started(b)), steps, found))
        return most


def _same(condition: str, kind: str, first: tuple[int, int], steps: tuple[int, int], found: bool) -> int:
    """For how many turns at least a condition of two values stays what it is."""
    (a, b), (by, other) = first, steps
    if condition in OPPOSITE:
        condition, found = OPPOSITE[condition], not found
    if kind == "add" and condition in ("eq", "mi") and not b >> 32:
        b, other = -b & WORD, -other
    elif kind == "add":
        return 0
    if condition not in _TRUE or a >> 32 != b >> 32:  # which grow differently in loops around this one
        return 0
    forms: tuple[tuple[int, int], ...]
    if a & OBJECTS:
        forms = (_ANY,)  # objects do not wrap around the end of memory
    elif condition in ("eq", "mi"):
        a, by, b, other = a - b & WORD, by - other, 0, 0
        forms = (_SIGNED, _UNSIGNED) if condition == "eq" else (_SIGNED,)
    else:
        forms = (_SIGNED,) if condition in ("ge", "gt") else (_UNSIGNED,)
        if a >> 32:
            return 0
    return max(_stays(a, by, b, other, condition, found, form) for form in forms)


def _stays(a: int, by: int, b: int, other: int, condition: str, found: bool, form: tuple[int, int]) -> int:
    """The same where numbers wrap around at the ends of `form`."""
    a, b = (a & WORD, b & WORD) if form == _UNSIGNED else (signed(a), signed(b))
    low, high = _TRUE[condition]
    if not found:
        low, high = (-ENDLESS, low) if a - b < low else (high, ENDLESS)
    return min(_within(a - b, by - other, low, high), _within(a, by, *form), _within(b, other, *form))


def _within(start: int, step: int, low: int, high: int) -> int:
    """For how many turns a value that starts here is at least `low` and below `high`."""
    if not low <= start < high:
        return 0
    if step == 0:
        return ENDLESS
    return (high - 1 - start) // step + 1 if step > 0 else (start - low) // -step + 1
