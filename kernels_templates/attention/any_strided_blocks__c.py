"""attention in portable C, any strides: a few rows of queries at a time meet blocks of keys. The largest score of a row
and the sum of its exponentials are carried from block to block; what was mixed of values before is scaled to a new
largest score. So the workspace holds a block of scores and a few rows of results, however many keys there are.

The result may lie over the queries: a row of it is written when its query is not read any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mccompile.base.dims import Dim, upper
from mccompile.base.dtypes import f32
from mccompile.base.marked import marked_name, named
from mccompile.base.records import dataclass
from mccompile.codegen.attention_cases import attention_cases, stored_cases
from mccompile.codegen.loops import index_c, nest, size_name
from mccompile.codegen.tiles import (
    Product,
    Range,
    Tile,
    best_cover,
    cut_sum,
    epilogue_alias,
    moved,
    parts,
    term_c,
)
from mccompile.expr.dims_c import size_c
from mccompile.expr.ir import Index, operand, walk
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias, supports_types
from mccompile.kinds.attention import Attention

BLOCK = 64  # keys: a multiple of what tiles have of them


@dataclass(frozen=True)
class Block:
    """What the template prints for tiles of sums of one size."""

    outer: str  # opens a loop over keys or channels
    tile: Tile
    around: tuple[Range, ...]
    inside: tuple[Range, ...]
    a_in: str
    b_in: str
    loads: tuple[tuple[str, str], ...]
    products: tuple[Product, ...]
    lines: tuple[str, ...]
    store: str


@dataclass(frozen=True)
class Run:
    """Tiles of so many rows."""

    outer: str  # opens the loop over them
    count: int
    scores: tuple[Block, ...]
    mixed: tuple[Block, ...]


class StridedBlocks(Kernel):
    kind = Attention

    def cases(self) -> Sequence[Case]:
        return [*attention_cases(), *stored_cases()]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if reason:
            return No(reason)
        kind = call.of(Attention)
        if kind.accumulator is not f32:
            return No(f"sums are of {kind.accumulator}, not of {f32}")
        alias = epilogue_alias(call, kind.fixed)
        if elementwise_alias(call, 0) and call.ins[0].buffer.dtype is call.outs[0].buffer.dtype:
            alias[0, 0] = 0
        printer = _Printer(call, *self.parameter_names(call))
        return Needs(alias=alias, scratch=4 * printer.high * (printer.block + upper(printer.channels)), symbols=True)

    def cost(self, call: Call, target: Target) -> Cost:
        q, k, v = call.ins[:3]
        scores = upper(q.type.count) // max(upper(q.shape[-1]), 1) * upper(k.shape[-1])
        high = best_cover(upper(q.shape[-2]), upper(k.shape[-1])).points
        widened = [view for view in (k, v) if view.buffer.dtype is not f32]  # anew for each tile of rows
        elements = scores * 9 + sum(upper(view.type.count) for view in widened) * -(-upper(q.shape[-2]) // high)
        return Cost(upper(call.macs) * target.machine.mac + elements * target.machine.element, code=1300)

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_math.h", "mcc_libm.h"})

    def label(self, call: Call) -> str:
        q, k, v = call.ins[:3]
        return "_".join(["attention", *map(size_name, (q.shape[-2], k.shape[-1], v.shape[-1]))])

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Printer(call, *self.parameter_names(call)).context()


class _Printer:
    """Loops and the text of every index for one call. Counters: n0.. batches, i row, j key, c channel, d what is summed
    up, `first` and `end` of a block of keys."""

    def __init__(self, call: Call, results: list[str], names: list[str]) -> None:
        self.kind, self.names, self.result = call.of(Attention), names, results[0]
        self.views = [call.outs[0], *call.ins]
        self.y, self.q, self.k, self.v = self.views[:4]
        self.rows, self.channels = self.y.shape[-2:]
        self.depth, self.keys = self.k.shape[-2:]
        tile = best_cover(upper(self.rows), upper(self.keys))
        self.high, self.wide = tile.points, tile.lanes
        self.across = best_cover(self.high, upper(self.channels), self.high).lanes
        self.block = min(-(-BLOCK // self.wide) * self.wide, upper(self.keys))
        indexed = any(isinstance(node, Index) for expr in self.kind.expressions() for node in walk(expr))
        self.batches = nest(self.y.shape[:-2], self.views, keep_axes=indexed, prefix="n")
        self.batch = tuple(map(marked_name, self.batches.axes))

    def context(self) -> dict[str, Any]:
        found = [self.run(outer, rows) for outer, rows in parts("i", self.rows, self.high)]
        lines, store = self.results()
        counters = [loop.counter for loop in self.batches.loops]
        return {
            "batches": [Range.over(loop.counter, loop.count) for loop in self.batches.loops],
            "runs": found,
            "scope": [*counters, "first", "end", "i", "float *shares", "float *mixed"],
            "room": self.high * self.block,
            "block": self.block,
            "keys": size_c(self.keys),
            "channels": size_c(self.channels),
            "one": upper(self.keys) <= self.block,
            "lowest": literal_c(float(np.finfo(np.float32).min), f32),
            "or_zero": self.kind.or_zero,
            "scale": self.scale() if self.kind.scaled else "",
            "lines": lines,
            "store": store,
        }

    def run(self, outer: str, rows: int) -> Run:
        scores = tuple(self.scores(header, Tile(rows, wide)) for header, wide in self.of_keys())
        mixed = tuple(self.mixed(header, Tile(rows, wide)) for header, wide in parts("c", self.channels, self.across))
        return Run(outer, rows, scores, mixed)

    def of_keys(self) -> list[tuple[str, int]]:
        """Whole tiles of a block, and those of one key behind them where some may be left over."""
        if self.wide == 1:
            return [(Range("j", self.block, "first", "end").header, 1)]
        first, end = named("first"), named("end")
        tiles = f"for (mcc_index j = {first}; j + {self.wide} <= {end}; j += {self.wide}) {{"
        rest = Range("j", self.wide, f"{end} - ({end} - {first}) % {self.wide}", "end").header
        return [(tiles, self.wide), *([(rest, 1)] if self.keys % self.wide != 0 else [])]

    def scores(self, outer: str, tile: Tile) -> Block:
        around, inside = cut_sum([Range.over("d", self.depth)] if self.depth != 1 else [], f32)
        step = "d" if self.depth != 1 else "0"
        a_in = index_c([1, *self.q.strides[-2:]], [self.batches.index(1), "i", step])
        b_in = index_c([1, self.k.strides[-1], self.k.strides[-2]], [self.batches.index(2), "j", step])
        q, k = self.q, self.k
        loads = self.loads(tile, ("q", q.buffer.dtype, q.strides[-2]), ("k", k.buffer.dtype, k.strides[-1]))
        counters = ["i", "point" if tile.points > 1 else "0", "j", "lane" if tile.lanes > 1 else "0"]
        operands = []
        for number in range(3, 3 + self.kind.operands):
            view = self.views[number + 1]
            down, right = view.strides[-2:]
            at = index_c([1, down, down, right, right], [self.batches.index(number + 1), *counters])
            operands.append(load_c(view.buffer.dtype, self.names[number], at))
        places = [index_c([1, 1], counters[:2]), index_c([1, 1], counters[2:])]
        score = self.kind.score or operand(0, f32)
        lines, value = to_statements(score, ["total", *operands], [*self.batch, *places], local="v")
        at = index_c([self.block, 1, 1], [counters[1], "j", counters[3]])
        store = store_c(f32, "shares", f"{at} - {named('first')}", value)
        return Block(outer, tile, around, inside, a_in, b_in, *loads, tuple(lines), store)

    def mixed(self, outer: str, tile: Tile) -> Block:
        inside = (Range("j", self.block, "first", "end"),)
        v = self.v
        b_in = index_c([1, v.strides[-1], v.strides[-2]], [self.batches.index(3), "c", "j"])
        loads = self.loads(tile, ("shares", f32, self.block), ("v", v.buffer.dtype, v.strides[-1]))
        counters = ["point" if tile.points > 1 else "0", "c", "lane" if tile.lanes > 1 else "0"]
        at = index_c([self.channels, 1, 1], counters)
        a_in, store = f"{named('j')} - {named('first')}", f"{named('mixed')}[{at}] += total;"
        return Block(outer, tile, (), inside, a_in, b_in, *loads, (), store)

    def scale(self) -> str:
        """The factor of the values of key `first + j`, for row `i + point`."""
        number = self.kind.fixed
        down, right = self.views[number].strides[-2:]
        counters = [self.batches.index(number), "i", "point", "first", "j"]
        return f"{self.names[number - 1]}[{index_c([1, down, down, right, right], counters)}]"

    def loads(
        self, tile: Tile, a: tuple[str, Any, Dim], b: tuple[str, Any, Dim]
    ) -> tuple[tuple[tuple[str, str], ...], tuple[Product, ...]]:
        found = [
            (f"{side}_{n}", term_c(dtype, pointer, moved(f"{side}_in", n * stride), f32))
            for side, count, (pointer, dtype, stride) in (("a", tile.points, a), ("b", tile.lanes, b))
            for n in range(count)
        ]
        products = [
            Product(tile.result(lane, point), f"a_{point}", f"b_{lane}")
            for lane in range(tile.lanes)
            for point in range(tile.points)
        ]
        return tuple(found), tuple(products)

    def results(self) -> tuple[list[str], str]:
        """Statements for one result, at row `i + point` and channel `c`."""

        def at(number: int) -> str:
            down, right = self.views[number].strides[-2:]
            return index_c([1, down, down, right], [self.batches.index(number), "i", "point", "c"])

        loads = [
            load_c(self.views[number + 1].buffer.dtype, self.names[number], at(number + 1))
            for number in range(self.kind.fixed, len(self.names))
        ]
        expr = self.kind.epilogue or operand(0, f32)
        places = [*self.batch, index_c([1, 1], ["i", "point"]), "c"]
        lines, value = to_statements(expr, ["element", *loads], places, local="v")
        return lines, store_c(self.y.buffer.dtype, self.result, at(0), value)
