"""attention in vectors: a block of keys is packed once and meets all rows of queries, a tile of rows at a time.

The scores of a tile wait in the workspace for their softmax and the product with values. Where keys are more than a
block, the largest score and the sum of each row are carried on, and the result holds what was mixed so far, which is
scaled to a new largest score.

Invariant: blocks and tiles depend on sizes alone, so workers change no bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.dims import static
from mccompile.base.dtypes import bool_, f32
from mccompile.base.marked import named
from mccompile.base.records import dataclass
from mccompile.codegen.attention_cases import attention, attention_cases, attention_in_blocks
from mccompile.codegen.loops import index_c, nest
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.vector.vector_epilogue import Reference, epilogue_statements
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_loops import chunks
from mccompile.codegen.vector.vector_tiles import (
    Pass,
    Taps,
    Tile,
    TileSize,
    best_tile,
    is_long,
    row_cycles,
    taken_together,
    vector_headers,
    vector_refusal,
)
from mccompile.expr.ir import Expr, apply, literal, operand, substitute
from mccompile.expr.scalar_c import literal_c
from mccompile.expr.vector_c import refusals, to_vector_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kernels.work import Units, slowest
from mccompile.kinds.attention import Attention

NOT_CUT, BY_BATCHES, BY_ROWS = range(3)  # how the work is cut for several workers
PANEL = 32 << 10  # bytes of keys in a block: what the first-level cache holds
SOFTMAX = 2.4  # cycles that an exponential and its sums take
PACKING = 0.5  # cycles per number


@dataclass(frozen=True)
class Columns:
    """Tiles along keys or channels, and C that opens the loop over them."""

    header: str
    tile: Tile


@dataclass(frozen=True)
class Rows:
    """Tiles of so many rows."""

    header: str
    count: int
    scores: tuple[Columns, ...]
    mixed: tuple[Columns, ...]


@dataclass(frozen=True)
class Sizes:
    """Of a call, and how it is computed."""

    rows: int
    depth: int
    keys: int
    channels: int
    scores: TileSize
    mixed: TileSize
    block: int  # keys, a multiple of what a tile has of them

    @property
    def blocks(self) -> int:
        return -(-self.keys // self.block)


class RowsBlocks(Kernel):
    kind = Attention
    isa = "vec"

    def cases(self) -> Sequence[Case]:
        return attention_cases()

    def sized_cases(self) -> Sequence[SizedCase]:
        return [attention, attention_in_blocks]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Attention)
        reason = vector_refusal(target) or static_views(call) or refusals(kind.expressions(), f32, (bool_,))
        if reason:
            return No(reason)
        views = (*call.ins, *call.outs)
        if any(view.buffer.dtype not in (f32, bool_) for view in views) or call.outs[0].buffer.dtype is not f32:
            return No("only for 32-bit floats")
        if kind.scaled:
            return No("it has no scales for values")
        if any(0 in view.shape for view in views):
            return No("the result is empty")
        sizes, cut = _best(call, target)
        alias = epilogue_alias(call, kind.fixed) if sizes.blocks == 1 else {}
        scratch = sum(_room(call, sizes).values()) * 4
        tiles = [(size.lanes, size.points, size.vectors, size.together) for size in (sizes.scores, sizes.mixed)]
        blocks = (*tiles[0], *tiles[1], sizes.block, cut)
        return Needs(alias=alias, numeric="ulp", scratch=scratch, scratch_align=64, blocks=blocks)

    def cost(self, call: Call, target: Target) -> Cost:
        sizes, _ = _best(call, target)
        cycles = _cycles(sizes, target) + sizes.rows * sizes.keys * SOFTMAX
        for view, columns in ((call.ins[1], sizes.depth), (call.ins[2], sizes.channels)):
            cycles += sizes.keys * columns * PACKING * (view.strides[-1] != 1)
        fixed = call.of(Attention).fixed
        for views, count, times in (
            (call.ins[3:fixed], sizes.rows * sizes.keys, 1),
            (call.ins[fixed:], sizes.rows * sizes.channels, 1),
            (call.outs, sizes.rows * sizes.channels, sizes.blocks),
        ):
            cycles += sum(count * times for view in views if static(view.strides[-1]) not in (0, 1))
        parts = 1 + bool(sizes.rows % sizes.scores.points)
        groups = (Groups(sizes.scores, sizes.keys), Groups(sizes.mixed, sizes.channels))
        code = 600 + sum(len(g.parts()) * parts * g.size.points * g.size.vectors * 20 for g in groups)
        return Cost(math.prod(map(static, call.outs[0].shape[:-2])) * cycles, code=code)

    def label(self, call: Call) -> str:
        q, k, v = call.ins[:3]
        return f"attention_{q.shape[-2]}_{k.shape[-1]}_{v.shape[-1]}"

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_shares.h"}) | vector_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        return _units(call, call.blocks[1], call.blocks[-1])

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call, *self.parameter_names(call)).context()


class _Layout:
    """Loops and C of indices for one call. Counters: n0.. batches, i row, j key, c channel, k along a sum; `first` and
    `until` are those of a block of keys, `width` is how many it has."""

    def __init__(self, call: Call, results: list[str], names: list[str]) -> None:
        self.call, self.kind, self.names, self.result = call, call.of(Attention), names, results[0]
        *tiles, block, self.cut = call.blocks
        q, k = call.ins[:2]
        rows, depth, keys, channels = (static(n) for n in (*q.shape[-2:], k.shape[-1], call.outs[0].shape[-1]))
        self.sizes = Sizes(rows, depth, keys, channels, TileSize(*tiles[:4]), TileSize(*tiles[4:]), block)
        self.views = [call.outs[0], *call.ins]
        self.batches = nest(self.views[0].shape[:-2], self.views, prefix="n")
        self.carried = self.sizes.blocks > 1
        self.room = _room(call, self.sizes)

    def context(self) -> dict[str, Any]:
        sizes = self.sizes
        lanes, across = sizes.scores.lanes, sizes.mixed.lanes
        batches = [Range.over(loop.counter, loop.count) for loop in self.batches.loops]
        if self.cut == BY_BATCHES:
            batches[0] = replace(batches[0], begin="begin", end="end")
        units = Units() if self.cut == BY_ROWS else None
        places, at = [], 0
        for name, floats in self.room.items():
            places.append((name, at))
            at += floats
        return {
            "batches": batches,
            "places": [place for place in places if self.room[place[0]]],
            "carried": self.carried,
            "block": sizes.block,
            "keys": sizes.keys,
            "runs": [self.rows(*run, units) for run in _row_runs(sizes.rows, sizes.scores.points)],
            "packed_keys": self.packed(2, "j", sizes.scores, sizes.keys) if self.room["panel"] else (),
            "packed_values": self.packed(3, "c", sizes.mixed, sizes.channels) if self.room["values"] else (),
            "scope": self.scope,
            "lanes": lanes,
            "of": f"f32x{lanes}",
            "of_result": f"f32x{across}",
            "lowest": literal_c(float(np.finfo(np.float32).min), f32),
            "results": self.results(),
            "zeros": self.zeros(),
        }

    @property
    def scope(self) -> list[str]:
        """What tiles may read of what stands around them."""
        pointers = [f"float *{name}" for name in (*self.room, "totals")]
        return [*(loop.counter for loop in self.batches.loops), "first", "until", "width", "i", *pointers]

    def index(self, number: int, *places: tuple[int | str, Any]) -> str:
        """C of the index of an element of a view, given by strides and counters."""
        counters = [self.batches.index(number), *(str(counter) for counter, _ in places)]
        return index_c([1, *(stride for _, stride in places)], counters)

    def packed(self, number: int, counter: str, size: TileSize, columns: int) -> list[dict[str, Any]]:
        """Loops that pack tiles of a block of keys (counter j), or of values."""
        view, depth = self.views[number], self.sizes.depth
        down, across = (static(stride) for stride in view.strides[-2:])
        found = []
        for header, _, _, vectors, last in self.groups(counter, size, columns):
            step = vectors * size.lanes
            if counter == "j":
                source = self.index(number, (counter, across), ("lane", across))
                first = f"(j - {self.start})" if self.carried else "j"
                target, limit = f"panel + {first} * {depth}", str(depth)
            else:
                source = self.index(number, (counter, across), ("lane", across), (self.start, down))
                target, limit = f"values + c * {self.sizes.block}", "width"
            found.append(
                {
                    "header": header,
                    "step": step,
                    "columns": step - size.lanes + last,
                    "source": f"{self.names[number - 1]}[{index_c([1, down], [source, 'at'])}]",
                    "target": target,
                    "limit": limit,
                }
            )
        return found

    @property
    def start(self) -> str:
        return "first" if self.carried else "0"

    def groups(self, counter: str, size: TileSize, columns: int) -> list[tuple[str, int, int, int, int]]:
        """Tiles along channels, or keys of a block: C that opens the loop; first, end, vectors, lanes of the last."""
        groups = Groups(size, columns)
        if counter == "c" or not self.carried:
            return [(header, *part) for header, part in zip(groups.headers(counter), groups.parts(), strict=True)]
        found = []
        for begin, end, vectors, last in groups.parts():
            if begin:
                header = f"if ({named('until')} > {begin}) {{\nconst mcc_index j = {begin};"
            else:
                until = named("until")
                limit = "until" if end >= columns else f"({until} < {end} ? {until} : {end})"
                header = Range("j", end, "first", limit, step=vectors * size.lanes).header
            found.append((header, begin, end, vectors, last))
        return found

    def rows(self, begin: int, stop: int, count: int, units: Units | None) -> Rows:
        header = f"{{\nconst mcc_index i = {begin};"
        if units is not None:
            header = units.loop("i", begin, count, (stop - begin) // count, count)
        elif stop - begin != count:
            header = Range("i", stop, str(begin), step=count).header
        scores = tuple(self.scores(count, *group) for group in self.groups("j", self.sizes.scores, self.sizes.keys))
        mixed = tuple(self.mixed(count, *group) for group in self.groups("c", self.sizes.mixed, self.sizes.channels))
        return Rows(header, count, scores, mixed)

    def reference(self, number: int, name: str, counter: str, count: int) -> Reference:
        view = self.views[number]
        down, across = (static(stride) for stride in view.strides[-2:])
        index = self.index(number, ("i", down), (counter, across))
        return Reference(name, index, down if count > 1 else 0, across, stored=view.buffer.dtype)

    def scores(self, count: int, header: str, begin: int, end: int, vectors: int, last: int) -> Columns:
        sizes, size = self.sizes, self.sizes.scores
        q, k = self.call.ins[:2]
        fixed = self.kind.fixed
        extras = [self.reference(number + 1, self.names[number], "j", count) for number in range(3, fixed)]
        place = f"({named('j')} - {named('first')})" if self.carried else "j"
        shares = Reference("shares", place, sizes.block if count > 1 else 0, 1)
        down, along = (static(stride) for stride in q.strides[-2:])
        step = vectors * size.lanes
        counter = "at" if sizes.depth > 1 else "0"
        x = self.index(1, ("i", down), (counter, along))
        if self.room["panel"]:
            base = index_c([sizes.depth], [place])
            w, w_step = index_c([1, step], [base, counter]), step
        else:
            w_step = static(k.strides[-2])
            w = self.index(2, ("j", 1), (counter, w_step))
        loops = (Range("at", sizes.depth),) if sizes.depth > 1 else ()
        taps = taken_together(Taps(tuple(range(count)), loops, x, w), size.together, w_step)
        w_last = last if not self.room["panel"] and last < size.lanes else 0
        passes = (Pass((), taps),)
        of, long = (size.lanes, count, vectors, last), is_long(passes, count, vectors)
        epilogue = epilogue_statements(self.kind.score, *of, shares, extras, sums=True, long=long)
        tile = Tile(size.lanes, count, vectors, down, passes, epilogue, w_last)
        return Columns(header, tile)

    def mixed(self, count: int, header: str, begin: int, end: int, vectors: int, last: int) -> Columns:
        sizes, size = self.sizes, self.sizes.mixed
        v = self.call.ins[2]
        y = self.reference(0, self.result, "c", count)
        if self.carried:
            expr: Expr = apply("add", apply("mul", operand(1, f32), operand(2, f32)), operand(0, f32))
            extras = [y, Reference("rests", "0", 1 if count > 1 else 0, 0)]
        else:
            expr = self.ended(operand(1, f32), 1)
            extras = [Reference("totals", "0", 1 if count > 1 else 0, 0)]
            fixed = self.kind.fixed
            extras += [self.reference(n + 1, self.names[n], "c", count) for n in range(fixed, len(self.names))]
        step = vectors * size.lanes
        if self.room["values"]:
            w, w_step = index_c([sizes.block, step], ["c", "at"]), step
        else:
            w_step = static(v.strides[-2])
            w = self.index(3, ("c", 1), ("at", w_step), (self.start, w_step))
        points = tuple(range(count))
        w_last = last if not self.room["values"] and last < size.lanes else 0
        passes = (Pass((), self.along_keys(Taps(points, (), "at", w), size.together, w_step)),)
        of, long = (size.lanes, count, vectors, last), is_long(passes, count, vectors)
        epilogue = epilogue_statements(expr, *of, y, extras, long=long)
        tile = Tile(size.lanes, count, vectors, sizes.block, passes, epilogue, w_last)
        return Columns(header, tile)

    def along_keys(self, taps: Taps, many: int, w_step: int) -> tuple[Taps, ...]:
        """The sum over the keys of a block, of which the last may have fewer."""
        sizes = self.sizes
        if not self.carried:
            return taken_together(replace(taps, loops=(Range("at", sizes.keys),)), many, w_step)
        every = Range("at", sizes.block, "0", "width")
        if many == 1:
            return (replace(taps, loops=(every,)),)
        whole = f"{named('width')} - {named('width')} % {many}" if sizes.keys % many else "width"
        strides = replace(every, end=whole, step=many)
        found = [replace(taps, loops=(strides,), w_step=w_step, together=many)]
        if sizes.keys % many:
            found.append(replace(taps, loops=(replace(every, begin=whole),)))
        return tuple(found)

    def ended(self, total: Expr, more: int) -> Expr:
        """The result of what was mixed, operand 0, and the sum of exponentials; `more` operands come before those of
        the epilogue."""
        element = apply("div", operand(0, f32), total)
        if self.kind.or_zero:
            element = apply("select", apply("greater", total, literal(0, f32)), element, literal(0, f32))
        extras = self.call.ins[self.kind.fixed :]
        inner = {number: operand(number + more, view.buffer.dtype) for number, view in enumerate(extras, 1)}
        return element if self.kind.epilogue is None else substitute(self.kind.epilogue, {0: element, **inner})

    def results(self) -> list[tuple[str, list[str]]]:
        """Where sums were carried: what becomes of a row when all keys were met."""
        if not self.carried:
            return []
        lanes = self.sizes.mixed.lanes
        found = []
        for chunk in chunks("c", self.sizes.channels, lanes):
            loads = []
            for number in (0, *range(self.kind.fixed + 1, len(self.views))):
                view = self.views[number]
                down, across = (static(stride) for stride in view.strides[-2:])
                index = self.index(number, ("i", down), ("point", down), ("c", across))
                name = self.names[number - 1] if number else self.result
                loads.append(chunk.load(lanes, name, index, across, view.buffer.dtype))
            y = self.views[0]
            down, across = (static(stride) for stride in y.strides[-2:])
            index = self.index(0, ("i", down), ("point", down), ("c", across))
            lines, value = to_vector_statements(self.ended(operand(1, f32), 1), [loads[0], "total", *loads[1:]], lanes)
            found.append((chunk.header, [*lines, chunk.store(lanes, self.result, index, value, across)]))
        return found

    def zeros(self) -> list[tuple[str, str]]:
        """Where sums are carried: a row of the result before it meets any keys."""
        if not self.carried:
            return []
        lanes, (down, across) = self.sizes.mixed.lanes, map(static, self.views[0].strides[-2:])
        index = self.index(0, ("i", down), ("point", down), ("c", across))
        return [
            (chunk.header, chunk.store(lanes, self.result, index, f"mcc_set_f32x{lanes}(0.0f)", across))
            for chunk in chunks("c", self.sizes.channels, lanes)
        ]


def _room(call: Call, sizes: Sizes) -> dict[str, int]:
    """Floats of the workspace, by what they are for."""
    k, v = call.ins[1:3]
    points = sizes.scores.points
    padded = Groups(sizes.mixed, sizes.channels).padded
    return {
        "panel": sizes.block * sizes.depth if k.strides[-1] != 1 else 0,
        "values": sizes.block * padded if v.strides[-1] != 1 else 0,
        "shares": sizes.block * points,
        "sums_of_rows": sizes.rows if sizes.blocks > 1 else points,
        "tops": sizes.rows if sizes.blocks > 1 else 0,
        "rests": points if sizes.blocks > 1 else 0,
    }


def _best(call: Call, target: Target) -> tuple[Sizes, int]:
    """Tiles of the two products with equal rows, the size of blocks, and how the work is cut."""
    q, k, v = call.ins[:3]
    rows, depth, keys, channels = (static(n) for n in (*q.shape[-2:], k.shape[-1], v.shape[-1]))
    apart = abs(static(q.strides[-2])) * 4
    run = depth if q.strides[-1] == 1 else 1

    def sizes(high: int) -> Sizes:
        scores = best_tile(rows, keys, depth, apart, target, run=run, high=high)
        step = scores.channels
        most = max(PANEL // (4 * depth) // step, 1) * step
        even = -(-keys // -(-keys // most))
        block = -(-even // step) * step
        mixed = best_tile(rows, channels, min(block, keys), 0, target, run=min(block, keys), high=scores.points)
        return Sizes(rows, depth, keys, channels, scores, mixed, block)

    first = sizes(0)
    other = best_tile(rows, channels, first.block, 0, target, run=first.block).points
    tried = [first, *([sizes(other)] if other != first.scores.points else [])]
    best = min(tried, key=lambda one: _cycles(one, target))
    if call.workers == 1:
        return best, NOT_CUT

    def unfair(cut: int) -> float:
        units = _units(call, best.scores.points, cut)
        return slowest(units, call.workers) if units else call.workers

    return best, min((BY_BATCHES, BY_ROWS), key=unfair)


def _cycles(sizes: Sizes, target: Target) -> float:
    """Of both products, for one batch."""
    last = sizes.keys - (sizes.blocks - 1) * sizes.block
    cycles = row_cycles(sizes.scores, sizes.rows, sizes.keys, sizes.depth, target)
    for width, many in ((sizes.block, sizes.blocks - 1), (last, 1)):
        cycles += many * row_cycles(sizes.mixed, sizes.rows, sizes.channels, width, target)
    return cycles + (sizes.blocks > 1) * sizes.blocks * sizes.rows * sizes.channels / sizes.mixed.lanes * 2


def _units(call: Call, points: int, cut: int) -> tuple[int, ...]:
    """What workers share: batches, or tiles of rows."""
    if cut == BY_BATCHES:
        batches = nest([static(dim) for dim in call.outs[0].shape[:-2]], [*call.outs, *call.ins]).loops
        return (1,) * batches[0].extent if batches else ()
    runs = _row_runs(static(call.ins[0].shape[-2]), points)
    return tuple(count for begin, stop, count in runs for _ in range(begin, stop, count))


def _row_runs(rows: int, points: int) -> list[tuple[int, int, int]]:
    """Runs of equal tiles: first row, end, and rows of each tile."""
    whole = rows // points * points
    return [run for run in ((0, whole, points), (whole, rows, rows - whole)) if run[0] != run[1]]
