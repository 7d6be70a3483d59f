"""Sums of products in portable C: a tile of results kept in named scalars, and sums that are cut into short pieces.

A tile is `points` x `lanes` results (positions x output channels, rows x columns). Every loaded number is used once per
row or column of the tile. Named scalars, not arrays: compilers keep them in registers, and make vectors of them where
operands lie side by side.

Invariant: long float sums are added up in pieces of about `PIECE` terms, whose sums are added up in turn, so rounding
errors grow with the length of a piece and the number of pieces, not with their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..base.dtypes import DType
from ..expr.scalar_c import cast_c, load_c
from ..program.ir import Call
from .api import elementwise_alias

PIECE = 128
LONG = 4 * PIECE  # sums up to here are not cut
MAX_RESULTS = 16  # of a tile: what fits the registers of most machines


@dataclass(frozen=True)
class Range:
    """A C loop over `counter`; `extent` is how often it runs at most."""

    counter: str
    extent: int
    begin: str = "0"
    end: str = ""
    step: int = 1

    @property
    def header(self) -> str:
        end = self.end or str(self.extent)
        move = f"++{self.counter}" if self.step == 1 else f"{self.counter} += {self.step}"
        return f"for (mcc_index {self.counter} = {self.begin}; {self.counter} < {end}; {move}) {{"


@dataclass(frozen=True)
class Product:
    result: int  # which scalar of the tile it is added to
    left: str
    right: str


@dataclass(frozen=True)
class Tile:
    points: int
    lanes: int

    @property
    def count(self) -> int:
        return self.points * self.lanes

    def result(self, lane: int, point: int) -> int:
        return lane * self.points + point

    @property
    def declarations(self) -> str:
        return ", ".join(f"a{number} = 0" for number in range(self.count))

    @property
    def scalars(self) -> str:
        return ", ".join(f"a{number}" for number in range(self.count))

    @property
    def place(self) -> str:
        """C for the number of the result at `lane` and `point`."""
        if self.points == 1 or self.lanes == 1:
            return "0" if self.count == 1 else "lane" if self.points == 1 else "point"
        return f"lane * {self.points} + point"


def sizes(limit: int, most: int) -> list[int]:
    """Candidates for one side of a tile over `limit` results."""
    return list(range(1, max(1, min(limit, most)) + 1))


def best_tile(points: int, lanes: int, loads_per_result: bool = False) -> Tile:
    """The tile with the least work for `points` x `lanes` results: loads and products per result. Points left over
    are computed one at a time; lanes are divided evenly. `loads_per_result`: each result has a factor of its own
    (depthwise over neighbouring channels)."""

    def effort(tile: Tile) -> float:
        left = tile.points + tile.lanes if not loads_per_result else tile.count + tile.lanes
        whole = (points // tile.points) * (left + tile.count)
        rest = (points % tile.points) * (1 + tile.lanes + tile.lanes)
        blocks = -(-lanes // tile.lanes)
        waiting = 4 / min(4, tile.count)  # fewer than four chains of additions wait for each other
        return (whole * waiting + rest * 4 / min(4, tile.lanes)) * blocks

    candidates = [
        Tile(p, n)
        for n in sizes(lanes, MAX_RESULTS)
        for p in sizes(points, 8)
        if n * p <= MAX_RESULTS and lanes % n == 0
    ]
    return min(candidates, key=lambda t: (effort(t), -(t.points % 4 == 0), -(t.lanes % 4 == 0), t.lanes))


def best_cover(points: int, lanes: int) -> Tile:
    """The tile for a matrix of `points` x `lanes` results whose last rows and columns, if any are left over, get
    smaller tiles of their own."""

    def effort(tile: Tile) -> float:
        total = 0.0
        for high, rows in ((tile.points, points // tile.points), (points % tile.points, 1)):
            for wide, columns in ((tile.lanes, lanes // tile.lanes), (lanes % tile.lanes, 1)):
                waiting = 4 / max(1, min(4, high * wide))  # fewer than four chains of additions wait for each other
                total += rows * columns * (high + wide + high * wide) * waiting if high * wide else 0
        return total

    candidates = [Tile(p, n) for n in sizes(lanes, MAX_RESULTS) for p in sizes(points, 8) if n * p <= MAX_RESULTS]
    return min(candidates, key=lambda t: (effort(t), -(t.lanes % 4 == 0), -(t.points % 4 == 0), t.points))


def cut_sum(loops: Sequence[Range], dtype: DType) -> tuple[tuple[Range, ...], tuple[Range, ...]]:
    """Splits the loops of a sum (outermost first) into those around a piece and those inside one. No loops around: the
    sum is short."""
    total = 1
    for loop in loops:
        total *= max(loop.extent, 1)
    if not dtype.is_float or dtype.bits > 32 or total <= LONG:
        return (), tuple(loops)
    terms = 1
    for position in range(len(loops) - 1, -1, -1):
        loop = loops[position]
        if terms * loop.extent <= PIECE:
            terms *= loop.extent
            continue
        piece = PIECE // terms
        if piece >= 2 and loop.begin == "0" and not loop.end:
            start = f"{loop.counter}_piece"
            end = f"{start} + {piece}"
            if loop.extent % piece:
                end = f"({end} < {loop.extent} ? {end} : {loop.extent})"
            around = replace(loop, counter=start, step=piece)
            inside = Range(loop.counter, piece, start, end)
            return (*loops[:position], around), (inside, *loops[position + 1 :])
        if terms >= PIECE // 8:
            return tuple(loops[: position + 1]), tuple(loops[position + 1 :])
        terms *= loop.extent
    return (), tuple(loops)


def term_c(dtype: DType, pointer: str, index: str, total: DType, zero: str = "") -> str:
    """C that reads a factor of a product as a number of the sum's type, less its zero point."""
    value = cast_c(load_c(dtype, pointer, index), dtype, total)
    return f"mcc_sub_{total}({value}, {zero})" if zero else value


def epilogue_alias(call: Call, fixed: int) -> dict[tuple[int, int], int]:
    """Operands of the epilogue that the result may be written over: each of their elements is read just before it is
    overwritten, and never again. In whatever order that happens, so elements must be of one size."""
    bits = call.outs[0].buffer.dtype.bits
    extras = range(fixed, len(call.ins))
    return {(0, i): 0 for i in extras if call.ins[i].buffer.dtype.bits == bits and elementwise_alias(call, i)}
