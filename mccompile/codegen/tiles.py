"""Sums of products in portable C: a tile of results kept in registers, and sums that are cut into short pieces.

A tile is `points` x `lanes` results (positions x output channels, rows x columns). Every loaded number is used once per
row or column of the tile. The accumulators are an array whose indices are all literals: compilers keep its elements in
registers, and make vectors of them where factors lie side by side along the lanes. That is why constant weights are
packed by lanes.

Invariant: long float sums are added up in pieces of about `PIECE` terms, whose sums are added up in turn, so rounding
errors grow with the length of a piece and the number of pieces, not with their product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..base.dims import Dim, upper
from ..base.dtypes import DType
from ..base.marked import listed, marked_name, sized, step
from ..base.records import dataclass
from ..expr.dims_c import dim_c, size_c
from ..expr.scalar_c import cast_c, load_c, math_c
from ..kernels.api import elementwise_alias
from ..program.ir import CONSTANT, Call, View
from .loops import index_c

PIECE = 128
LONG = 4 * PIECE  # sums up to here are not cut
MAX_RESULTS = 16  # of a tile: what fits the registers of most machines

Named = tuple[tuple[str, str], ...]  # C names and their values


@dataclass(frozen=True)
class Range:
    """A C loop over `counter`; `extent` is how often it runs at most, `size` where that is known only at run time."""

    counter: str
    extent: int
    begin: str = "0"
    end: str = ""
    step: int = 1
    then: str = ""  # what comes first inside of it
    size: Dim = 0

    @staticmethod
    def over(counter: str, size: Dim, step: int = 1) -> Range:
        return Range(counter, upper(size), step=step, size=size)

    @property
    def limit(self) -> str:
        return self.end or size_c(self.extent if isinstance(self.size, int) else self.size)

    @property
    def header(self) -> str:
        begin, end = map(marked_name, (self.begin, self.limit))
        move = f"++{self.counter}" if self.step == 1 else f"{self.counter} += {sized(self.step)}"
        loop = f"for (mcc_index {self.counter} = {begin}; {self.counter} < {end}; {move}) {{"
        return f"{loop}\n{self.then}" if self.then else loop


@dataclass(frozen=True)
class Product:
    result: int  # which scalar of the tile it is added to
    left: str
    right: str


@dataclass(frozen=True)
class Tile:
    points: int
    lanes: int
    filled: str = ""  # C for how many lanes have results, where that is not all: a template names it `lanes`

    @property
    def count(self) -> int:
        return self.points * self.lanes

    def result(self, lane: int, point: int) -> int:
        return point * self.lanes + lane

    def declared(self, type: str) -> str:
        """C that declares the sums, of C type `type`, and sets them to zero."""
        return f"{type} acc[{self.count}] = {{0}}"

    def step(self, does: str) -> str:
        """Opens a block that does something with all results, and that functions may share."""
        return step(f"{does}_{self.points}x{self.lanes}")

    @property
    def scalars(self) -> str:
        return listed(f"acc[{number}]" for number in range(self.count))

    def scalars_as(self, type: str) -> str:
        """The same, of another C type."""
        return listed(f"({type})acc[{number}]" for number in range(self.count))

    def over(self, counters: Sequence[str]) -> list[str]:
        """C that opens the loops over its results, by `lane` and by `point`, as far as there are several."""
        counts = {"lane": self.lanes, "point": self.points}
        limits = {"lane": "lanes" if self.filled else self.lanes, "point": self.points}
        opened = (name for name in counters if counts[name] > 1)
        return [f"for (mcc_index {name} = 0; {name} < {limits[name]}; ++{name}) {{" for name in opened]

    @property
    def place(self) -> str:
        """C for the number of the result at `lane` and `point`."""
        if self.points == 1 or self.lanes == 1:
            return "0" if self.count == 1 else "lane" if self.points == 1 else "point"
        return f"point * {self.lanes} + lane"


@dataclass(frozen=True)
class Tiled:
    """What a template prints for one size of tile."""

    tile: Tile
    around: tuple[Range, ...]  # of a sum: loops around its pieces
    inside: tuple[Range, ...]


@dataclass(frozen=True)
class Body(Tiled):
    """Of products."""

    loads: Named
    products: tuple[Product, ...]
    lines: tuple[str, ...]
    store: str


def best_tile(points: int, lanes: int, own_factors: bool = False) -> Tile:
    """The tile with the least work for `points` x `lanes` results. Points left over are computed one at a time; lanes
    are divided evenly. `own_factors`: no two results share a factor of x (depthwise over neighbouring channels)."""

    def work(tile: Tile) -> float:
        rest = Tile(1, tile.lanes)
        whole = points // tile.points * effort(tile, own_factors)
        return (whole + points % tile.points * effort(rest, own_factors)) * (lanes // tile.lanes)

    return min((t for t in _tiles(points, lanes) if lanes % t.lanes == 0), key=lambda t: (work(t), -t.points))


def best_cover(points: int, lanes: int, high: int = 0) -> Tile:
    """The tile for a matrix of `points` x `lanes` results whose last rows and columns, if any are left over, get
    smaller tiles of their own; one of `high` points, where that is not 0."""

    def work(tile: Tile) -> float:
        rows = ((tile.points, points // tile.points), (points % tile.points, 1))
        columns = ((tile.lanes, lanes // tile.lanes), (lanes % tile.lanes, 1))
        return sum(h * w * effort(Tile(high, wide)) for high, h in rows for wide, w in columns if high and wide)

    fitting = [tile for tile in _tiles(points, lanes) if high in (0, tile.points)]
    return min(fitting, key=lambda t: (work(t), -t.points))


def effort(tile: Tile, own_factors: bool = False) -> float:
    """Roughly what one step of the sums of a tile takes: loads and products, four lanes at once where they divide by
    four. Fewer than four chains of additions wait for each other."""
    width = 4 if tile.lanes % 4 == 0 else 1
    products = tile.count / width
    loads = (products if own_factors else tile.points) + tile.lanes / width
    return (loads + products) * (2 - min(4, products) / 4)


def _tiles(points: int, lanes: int) -> list[Tile]:
    """Every tile that fits registers and the result."""
    return [
        Tile(p, n)
        for n in range(1, min(max(lanes, 1), MAX_RESULTS) + 1)
        if n != lanes or n not in (8, 16)  # see packed_row: two smaller tiles beside each other
        for p in range(1, min(max(points, 1), MAX_RESULTS // n, 8) + 1)
    ]


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
            if loop.extent % piece or not isinstance(loop.size, int):
                end = f"({end} < {loop.limit} ? {end} : {loop.limit})"
            around = replace(loop, counter=start, step=piece, then="")
            inside = Range(loop.counter, piece, start, end, then=loop.then)
            return (*loops[:position], around), (inside, *loops[position + 1 :])
        if terms >= PIECE // 8:
            return tuple(loops[: position + 1]), tuple(loops[position + 1 :])
        terms *= loop.extent
    return (), tuple(loops)


def parts(counter: str, count: Dim, size: int) -> list[tuple[str, int]]:
    """Whole tiles along rows or columns, then what is left over: each as C that opens a block, and the size of its
    tiles."""
    found: list[tuple[str, int]] = []
    if not isinstance(count, int):
        if count % size == 0 or size == 1:
            return [(Range.over(counter, count, step=size).header, size)]
        tiles = Range(counter, 0, end=dim_c(count - (size - 1)), step=size)
        rest = Range(counter, 0, begin=dim_c(count - count % size), end=dim_c(count))
        return [(tiles.header, size), (rest.header, 1)]
    whole = count - count % size
    if whole:
        found.append((Range(counter, whole, step=size).header, size))
    if count % size:
        found.append((f"{{\nconst mcc_index {counter} = {sized(whole)};", count % size))
    return found or [(Range(counter, 0).header, 1)]


def moved(name: str, step: Dim) -> str:
    return index_c([1], [name], step) if step != 0 else name


def term_c(dtype: DType, pointer: str, index: str, total: DType, zero: str = "") -> str:
    """C that reads a factor of a product as a number of the sum's type, less its zero point."""
    value = cast_c(load_c(dtype, pointer, index), dtype, total)
    return math_c(f"mcc_sub_{total}", value, zero) if zero else value


def is_constant(view: View) -> bool:
    """Such an operand may be packed; what is computed, or chosen, at run time lies as it does."""
    return view.buffer.role == CONSTANT and isinstance(view.offset, int)


def epilogue_alias(call: Call, fixed: int) -> dict[tuple[int, int], int]:
    """Operands of the epilogue that the result may be written over: each of their elements is read just before it is
    overwritten, and never again. In whatever order that happens, so elements must be of one size."""
    bits = call.outs[0].buffer.dtype.bits
    extras = range(fixed, len(call.ins))
    return {(0, i): 0 for i in extras if call.ins[i].buffer.dtype.bits == bits and elementwise_alias(call, i)}
