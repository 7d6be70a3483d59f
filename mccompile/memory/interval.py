"""What a planner places (`Part`, `Block`), what it answers (`Placement`), and the bound that no answer can beat.

Think of a sheet of paper: time runs to the right, addresses run up. A buffer is a rectangle: as wide as its life, as
tall as its bytes. A `Block` is one or more rectangles (`Part`) glued together: an in-place write, a chain of
overwrites or an output laid over its dying input at a distance is part of the history of ONE block. Planning slides
blocks up and down (never sideways) until no two overlap; the height of the pile is the size of the arena.

Invariant: a block's lowest byte is 0 and a part has a positive duration, so an offset is the address of the
lowest byte a block ever uses.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np


@dataclass(frozen=True, slots=True)
class Part:
    """During the time steps [start, end) the bytes [low, high), counted from the block's address, are in use."""

    start: int
    end: int
    low: int
    high: int

    def __post_init__(self) -> None:
        if self.start >= self.end or self.low > self.high:
            raise ValueError(f"{self} is empty or runs backwards")


@dataclass(frozen=True, slots=True)
class Block:
    """A rigid history of memory use that gets one address, a multiple of `align` (or exactly `fixed`)."""

    name: str
    parts: tuple[Part, ...]
    align: int = 16
    fixed: int | None = None

    def __post_init__(self) -> None:
        if self.align < 1:
            raise ValueError(f"block {self.name}: the alignment must be at least 1, not {self.align}")
        if not self.parts or min(part.low for part in self.parts) != 0:
            raise ValueError(f"block {self.name}: the lowest byte of its parts must be 0 (see `glue`)")
        if self.fixed is not None and (self.fixed < 0 or self.fixed % self.align):
            raise ValueError(f"block {self.name}: the fixed address {self.fixed} is not a multiple of {self.align}")

    @property
    def size(self) -> int:
        """Bytes from the lowest to the highest that is ever in use."""
        return max(part.high for part in self.parts)

    @property
    def start(self) -> int:
        return min(part.start for part in self.parts)

    @property
    def end(self) -> int:
        return max(part.end for part in self.parts)


@dataclass(frozen=True, slots=True)
class Placement:
    """One address per block, in the order of the blocks, and the bytes that all of them need."""

    offsets: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment of the largest live set: `bytes` that no placement can avoid, and the blocks that are live then."""

    time: int
    bytes: int
    names: tuple[str, ...]


def align_up(value: int, align: int) -> int:
    return -(-value // align) * align


def glue(name: str, parts: Sequence[Part], align: int = 16, fixed: int | None = None) -> tuple[Block, int]:
    """A block from parts whose lowest byte need not be 0, and the shift: byte b of a part became b + shift.

    `fixed` is the address of byte 0 as the caller counts it. For tensors at a distance to stay aligned, the shift must
    be a multiple of their alignment; that is the caller's choice of distance.
    """
    shift = -min(part.low for part in parts)
    moved = tuple(Part(part.start, part.end, part.low + shift, part.high + shift) for part in parts)
    return Block(name, moved, align, None if fixed is None else fixed - shift), shift


def placement_of(blocks: Sequence[Block], offsets: Sequence[int]) -> Placement:
    """The placement with these offsets; its size is the highest end of a block."""
    size = max((offset + block.size for block, offset in zip(blocks, offsets, strict=True)), default=0)
    return Placement(tuple(offsets), size)


def naive_size(blocks: Sequence[Block]) -> int:
    """Bytes needed when every block has its own place, one after the other."""
    size = 0
    for block in blocks:
        size = align_up(size, block.align) + block.size
    return size


def lower_bound(blocks: Sequence[Block]) -> int:
    """No placement is smaller: the largest live set, the tallest block, the highest end of a fixed block."""
    return max([peak(blocks).bytes, *(block.size + (block.fixed or 0) for block in blocks)])


def peak(blocks: Sequence[Block]) -> Peak:
    """The first moment of the largest live set.

    Alignment is counted in: every address is a multiple of the grain (the greatest common divisor of all alignments),
    so a grain belongs to the one range that covers its first byte, and only the topmost range saves its last, partly
    filled grain. Thus at any moment: bytes >= grains * grain - (largest rest of a live range).
    """
    grain = math.gcd(*(block.align for block in blocks)) if blocks else 1
    spans = sorted((span for block in blocks for span in spans_of(block, grain)), key=lambda span: span.start)
    ends = sorted(spans, key=lambda span: span.end)
    rests: list[tuple[int, int]] = []  # (-rest, end) of the live spans and of some that are over
    best_time, best_bytes = 0, 0
    live_bytes = live_grains = ended = index = 0
    while index < len(spans):
        now = spans[index].start
        while ends[ended].end <= now:
            live_bytes -= ends[ended].bytes
            live_grains -= ends[ended].grains
            ended += 1
        while index < len(spans) and spans[index].start == now:
            span = spans[index]
            live_bytes += span.bytes
            live_grains += span.grains
            if span.grains:
                heapq.heappush(rests, (-span.rest, span.end))
            index += 1
        while rests and rests[0][1] <= now:
            heapq.heappop(rests)
        needed = max(live_bytes, live_grains * grain + rests[0][0] if rests else 0)
        if needed > best_bytes:
            best_time, best_bytes = now, needed
    live = (
        block.name
        for block in blocks
        if any(part.start <= best_time < part.end and part.low < part.high for part in block.parts)
    )
    return Peak(best_time, best_bytes, tuple(live))


@dataclass(frozen=True, slots=True)
class Span:
    """What one block holds during [start, end): its bytes, the grains whose first byte it covers, and its rest."""

    start: int
    end: int
    bytes: int
    grains: int
    rest: int


MANY_PARTS = 64  # from here on numpy is quicker


def spans_of(block: Block, grain: int) -> list[Span]:
    if len(block.parts) >= MANY_PARTS:
        return _spans_of_many(block, grain)
    cuts = sorted({time for part in block.parts for time in (part.start, part.end)})
    spans = []
    for start, end in pairwise(cuts):
        live = [(part.low, part.high) for part in block.parts if part.start <= start < part.end]
        ranges = _merged(sorted(live))
        grains = [align_up(high, grain) // grain - align_up(low, grain) // grain for low, high in ranges]
        rests = [align_up(high, grain) - high for (_, high), count in zip(ranges, grains, strict=True) if count]
        spans.append(Span(start, end, sum(h - low for low, h in ranges), sum(grains), max(rests, default=0)))
    return spans


def _spans_of_many(block: Block, grain: int) -> list[Span]:
    """The same for the parts of a large concat, of which each moment sees many."""
    parts = sorted((part.low, part.high, part.start, part.end) for part in block.parts if part.low < part.high)
    lows, highs, starts, ends = np.array(parts, np.int64).reshape(-1, 4).T
    cuts = sorted({time for part in block.parts for time in (part.start, part.end)})
    spans = []
    for start, end in pairwise(cuts):
        live = (starts <= start) & (start < ends)
        low, reached = lows[live], np.maximum.accumulate(highs[live])
        first = np.ones(len(low), bool)  # of a range: what begins beyond all before
        first[1:] = low[1:] > reached[:-1]
        last = np.append(first[1:], True)[: len(low)]
        low, high = low[first], reached[last]
        up = -(-high // grain)
        grains = up - -(-low // grain)
        rests = (up * grain - high)[grains > 0]
        spans.append(Span(start, end, int((high - low).sum()), int(grains.sum()), int(rests.max(initial=0))))
    return spans


def _merged(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted ranges as disjoint ones; empty ranges vanish."""
    merged: list[tuple[int, int]] = []
    for low, high in ranges:
        if low == high:
            continue
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged
