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

from mccompile.memory.coverage import Coverage


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
    return max([peak(blocks).bytes, *map(highest_end, blocks)])


def highest_end(block: Block) -> int:
    """A block ends there or above."""
    return block.size + (block.fixed or 0)


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


def spans_of(block: Block, grain: int) -> list[Span]:
    if len(block.parts) == 1:
        return [_span_of(block.parts[0], grain)]
    coverage = Coverage([(part.start, part.end, part.low, part.high) for part in block.parts])
    edges, covering = coverage.edges, coverage.covering
    nbytes = grains = 0
    rests = _GrainRemainders(edges, covering, grain)
    spans: list[Span] = []
    since: Span | None = None
    for time, come, gone in coverage.changes():
        if since is not None:
            spans.append(Span(since.start, time, since.bytes, since.grains, since.rest))
        for cells, sign in ((come, 1), (gone, -1)):
            for cell in cells:
                low, high = edges[cell], edges[cell + 1]
                nbytes += sign * (high - low)
                grains += sign * (-(-high // grain) - -(-low // grain))
        rests.update([*come, *gone])
        since = Span(time, time + 1, nbytes, grains, rests.largest())
    return spans


def _span_of(part: Part, grain: int) -> Span:
    grains = -(-part.high // grain) - -(-part.low // grain)
    return Span(part.start, part.end, part.high - part.low, grains, -part.high % grain if grains else 0)


class _GrainRemainders:
    """What the last grains of the ranges in use leave empty, for ranges that cover the first byte of a grain."""

    def __init__(self, edges: list[int], covering: list[int], grain: int) -> None:
        self.edges, self.covering, self.grain = edges, covering, grain
        self.of: dict[int, int] = {}  # by the last cell of a range
        self.count = [0] * grain  # ranges by their rests

    def update(self, changed: list[int]) -> None:
        """After these cells came or went: a range ends at one of them, just before it, or within a grain above it."""
        for cell in changed:
            last = cell - 1
            while last < len(self.edges) - 1 and (last <= cell or self.edges[last] < self.edges[cell + 1] + self.grain):
                self._set(last, self._rest(last))
                last += 1

    def largest(self) -> int:
        return next((rest for rest in range(self.grain - 1, 0, -1) if self.count[rest]), 0)

    def _set(self, last: int, rest: int) -> None:
        self.count[self.of.get(last, 0)] -= 1
        self.count[rest] += 1
        self.of[last] = rest

    def _rest(self, last: int) -> int:
        """0 where no range ends there, or none that covers the first byte of a grain."""
        if last < 0 or not self.covering[last] or self.covering[last + 1]:
            return 0
        high = self.edges[last + 1]
        rest, cell = -high % self.grain, last
        while cell >= 0 and self.covering[cell] and self.edges[cell] > high + rest - self.grain:
            cell -= 1
        return rest if cell >= 0 and self.covering[cell] else 0
