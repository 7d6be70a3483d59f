"""Which calls access a piece of memory, when, and which bytes: part of bufferize.

Invariant: `used_after` tells exactly what going through all accesses would, in time that follows the edges between
bytes that are touched at different times, not the number of accesses.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from typing import NamedTuple


class Access(NamedTuple):
    time: int
    low: int
    high: int  # bytes of the root
    held: bool = False  # nothing is read or written, but the bytes are needed


_NEVER = -(1 << 62)


class Accesses:
    """All accesses to a root and what overlaps it."""

    def __init__(self) -> None:
        self.all: list[Access] = []
        self.first, self.last = -_NEVER, _NEVER  # times
        self._edges = [_NEVER]  # from one to the next bytes are used for the last time together
        self._lasts = [_NEVER]  # when

    def add(self, access: Access) -> None:
        self.all.append(access)
        self.first, self.last = min(self.first, access.time), max(self.last, access.time)
        if access.low >= access.high:
            return
        begin, end = self._cut(access.low), self._cut(access.high)
        if end == begin + 1:  # what is touched as a whole, as most buffers are
            self._lasts[begin] = max(self._lasts[begin], access.time)
            return
        pieces = [(self._edges[at], max(self._lasts[at], access.time)) for at in range(begin, end)]
        before = self._lasts[begin - 1]
        kept = [piece for piece, (_, last) in zip(pieces, [(0, before), *pieces], strict=False) if piece[1] != last]
        self._edges[begin:end] = [edge for edge, _ in kept]
        self._lasts[begin:end] = [last for _, last in kept]

    def take(self, other: Accesses, shift: int) -> None:
        """What lies `shift` bytes into this memory from now on."""
        for time, low, high, held in other.all:
            self.add(Access(time, low + shift, high + shift, held))

    def used_after(self, time: int, low: int, high: int) -> bool:
        """Are any of these bytes needed after a moment?"""
        if self.last <= time:
            return False
        begin, end = bisect_right(self._edges, low) - 1, bisect_left(self._edges, high)
        return any(last > time for last in self._lasts[begin:end])

    def _cut(self, at: int) -> int:
        """The number of the piece that begins there, after it was cut in two if need be."""
        number = bisect_left(self._edges, at)
        if number == len(self._edges) or self._edges[number] != at:
            self._edges.insert(number, at)
            self._lasts.insert(number, self._lasts[number - 1])
        return number
