"""attention in vectors for a few rows, or for rows and keys whose number is known only at run time: a score is the sum
of a vector of products along the depth, several keys at a time, so that no key is packed.

A tile of rows meets blocks of keys. The largest score and the sum of a row are carried from block to block, and what
was mixed waits in the workspace, scaled to a new largest score. The result may lie over the queries: rows of it are
written when these are not read any more.

Keys and values that are stored in fewer bits become floats as they are loaded, for one row at a time; for tiles of
several rows a block of them is widened first, which then meets all rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.dims import Dim, static, upper
from mccompile.base.dtypes import bf16, bool_, f16, f32, i8
from mccompile.base.marked import named
from mccompile.base.records import dataclass
from mccompile.codegen.attention_cases import TURNED, attention, attention_cases, stored_cases
from mccompile.codegen.loops import index_c, nest, size_name
from mccompile.codegen.tiles import Range, epilogue_alias, parts
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_loops import Chunk, chunks, narrow
from mccompile.codegen.vector.vector_tiles import (
    TileSize,
    best_lanes,
    vector_headers,
    vector_refusal,
    vector_registers,
)
from mccompile.expr.dims_c import size_c
from mccompile.expr.ir import Expr, apply, literal, operand, substitute
from mccompile.expr.scalar_c import literal_c
from mccompile.expr.vector_c import refusals, to_vector_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, elementwise_alias
from mccompile.kinds.attention import Attention

BLOCK = 64  # keys
MOST_LANES = 8  # of vectors that can be turned
MOST_VECTORS = 8  # of channels in a tile
SPARE = 2  # registers for what comes by
FEW = 6  # registers, of which vectors that are turned take several
SHARE = 2.4  # cycles that an exponential and its sums take
WIDENED = 1.3  # cycles for a vector
STORED = (f32, f16, bf16, i8)


@dataclass(frozen=True)
class Mixed:
    """Tiles along the channels."""

    header: str
    vectors: tuple[tuple[str, str], ...]  # C of a vector of values, and where it is mixed


@dataclass(frozen=True)
class Side:
    """Where tiles read key or value `j`, from which the next one is `apart`."""

    of: str  # C type
    place: str
    apart: str
    load: str  # and the name of what loads a vector of it
    load_part: str


@dataclass(frozen=True)
class Widened:
    """Keys or values of a block as floats."""

    side: Side
    room: str
    width: int
    chunks: tuple[tuple[str, str, str], ...]  # C of loops, of a vector `x` of `row`, and what stores it in `wide`


@dataclass(frozen=True)
class Rows:
    """Tiles of so many rows."""

    header: str
    count: int
    mixed: tuple[Mixed, ...]
    key: Side
    value: Side


class RowsDots(Kernel):
    kind = Attention
    isa = "vec"

    def cases(self) -> Sequence[Case]:
        return [case for case in (*attention_cases(), *stored_cases()) if case.permute.get(1) == TURNED[1]]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [attention]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Attention)
        reason = vector_refusal(target) or refusals(kind.expressions(), f32, (bool_,)) or _view_refusal(call)
        if reason:
            return No(reason)
        alias = epilogue_alias(call, kind.fixed)
        if elementwise_alias(call, 0):
            alias[0, 0] = 0
        depth, channels = static(call.ins[0].shape[-1]), static(call.outs[0].shape[-1])
        lanes = min(best_lanes(max(depth, channels), target), MOST_LANES)
        registers = vector_registers(lanes, target) - SPARE
        rows = min(4 if registers > FEW else 2, upper(call.ins[0].shape[-2]))
        floats = sum(_room(call, lanes, rows).values())
        return Needs(
            alias=alias,
            numeric="ulp",
            scratch=4 * floats,
            scratch_align=64,
            symbols=True,
            blocks=(lanes, rows, registers),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        lanes, rows, registers = call.blocks
        q, k, v = call.ins[:3]
        depth, channels = (-(-static(view.shape[-1]) // lanes) for view in (q, v))
        scores = upper(q.type.count) // max(static(q.shape[-1]), 1) * upper(k.shape[-1])
        turned = (2 if registers > FEW else 8) + lanes / 4
        each = depth * 0.6 + turned + SHARE * 8 / lanes + channels * 0.6
        several = upper(q.shape[-2]) > 1
        vectors = [scores // upper(q.shape[-2]) * width for width in _widened(call, depth, channels)]
        cycles = scores * each + sum(vectors) * (WIDENED if several else 0.6)
        return Cost(cycles, code=900 + 60 * rows + 200 * len(vectors) * several)

    def label(self, call: Call) -> str:
        q, k, v = call.ins[:3]
        return "_".join(["attention", *map(size_name, (q.shape[-2], k.shape[-1], v.shape[-1]))])

    def headers(self, call: Call) -> frozenset[str]:
        return frozenset({"mcc_shares.h"}) | vector_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        batches = nest(call.outs[0].shape[:-2], [*call.outs, *call.ins]).loops
        return (1,) * batches[0].extent if batches else ()

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Printer(call, *self.parameter_names(call)).context()


def _widened(call: Call, of_keys: int, of_values: int) -> list[int]:
    """The widths of what is stored in fewer bits."""
    widths = zip(call.ins[1:3], (of_keys, of_values), strict=True)
    return [width for view, width in widths if view.buffer.dtype is not f32]


def _room(call: Call, lanes: int, rows: int) -> dict[str, int]:
    """What lies in the workspace, in floats. Where blocks are widened, all rows meet one before the next."""
    depth, channels = static(call.ins[0].shape[-1]), static(call.outs[0].shape[-1])
    padded, widened = -(-channels // lanes) * lanes, _widened(call, depth, channels) if rows > 1 else []
    every = upper(call.ins[0].shape[-2]) if widened else rows
    room = {"shares": rows * BLOCK, "mixed": every * padded}
    if widened:
        room |= {"tops": every, "totals": every}
        room |= {"keys": BLOCK * depth} if call.ins[1].buffer.dtype is not f32 else {}
        room |= {"values": BLOCK * channels} if call.ins[2].buffer.dtype is not f32 else {}
    return room


def _view_refusal(call: Call) -> str:
    """Why operands do not lie as vectors need them, or nothing."""
    (q, k, v), out = call.ins[:3], call.outs[0]
    views, kind = (*call.ins, out), call.of(Attention)
    others = (q, *call.ins[3:], out)
    if any(view.buffer.dtype not in (f32, bool_) for view in others) or out.buffer.dtype is not f32:
        return "only for 32-bit floats"
    if any(view.buffer.dtype not in STORED for view in (k, v)):
        return "keys or values are of a type that is not widened"
    if kind.scaled and (call.ins[kind.fixed - 1].strides[-2:] != (0, 1)):
        return "scales of values are not contiguous"
    if any(0 in view.shape for view in views):
        return "the result is empty"
    inner = (q.shape[-1], v.shape[-1], *out.shape[:-2], *(view.strides[-1] for view in (*call.ins[3:], out)))
    if not all(isinstance(dim, int) for dim in inner):
        return "depth, channels or batches are known only at run time"
    if any(stride != 1 for stride in (q.strides[-1], k.strides[-2])) and q.shape[-1] != 1:
        return "elements of queries or keys are not contiguous"
    return "" if v.strides[-1] == 1 or v.shape[-1] == 1 else "elements of values are not contiguous"


class _Printer:
    """Loops and C of indices. Counters: n0.. batches, i row, point in a tile of rows, j key, c channel, at along the
    depth; `first` and `until` are those of a block of keys."""

    def __init__(self, call: Call, results: list[str], names: list[str]) -> None:
        self.call, self.kind, self.names, self.result = call, call.of(Attention), names, results[0]
        self.lanes, self.high, self.registers = call.blocks
        self.views = [call.outs[0], *call.ins]
        self.rows, self.channels = call.outs[0].shape[-2], static(call.outs[0].shape[-1])
        self.depth, self.keys = static(call.ins[0].shape[-1]), call.ins[1].shape[-1]
        self.batches = nest(self.views[0].shape[:-2], self.views, prefix="n")
        self.room = _room(call, self.lanes, self.high)

    def context(self) -> dict[str, Any]:
        batches = [Range.over(loop.counter, loop.count) for loop in self.batches.loops]
        if self.call.workers > 1 and batches:
            batches[0] = replace(batches[0], begin="begin", end="end")
        padded = -(-self.channels // self.lanes) * self.lanes
        counters = [loop.counter for loop in self.batches.loops]
        whole = self.depth // self.lanes * self.lanes
        sizes, names = list(self.room.values()), list(self.room)
        widened = self.widened()
        shown = [f"all_{name}" if widened and name in ("mixed", "tops", "totals") else name for name in names]
        return {
            "batches": batches,
            "runs": [self.run(outer, count) for outer, count in parts("i", self.rows, self.high)],
            "scope": [*counters, "first", "until", "i", *(f"float *{name}" for name in (*names, "rests"))],
            "block": BLOCK,
            "places": [(name, sum(sizes[:number])) for number, name in enumerate(shown)],
            "several": "" if isinstance(self.rows, int) else f"if ({size_c(self.rows)} >= {self.high}) ",
            "high": self.high,
            "widened": widened,
            "scale": self.scale() if self.kind.scaled else "",
            "padded": padded,
            "keys": size_c(self.keys),
            "lanes": self.lanes,
            "of": f"f32x{self.lanes}",
            "query": self.at(1, ("i", -2), ("point", -2)),
            "whole": whole,
            "left": self.depth - whole,
            "scores": [self.score(str(self.lanes)), self.score("left")],
            "lowest": literal_c(float(np.finfo(np.float32).min), f32),
            "results": self.results(padded),
        }

    def index(self, number: int, *places: tuple[str, Dim]) -> str:
        counters = [self.batches.index(number), *(counter for counter, _ in places)]
        return index_c([1, *(stride for _, stride in places)], counters)

    def at(self, number: int, *places: tuple[str, int]) -> str:
        return self.index(number, *((counter, self.views[number].strides[axis]) for counter, axis in places))

    def run(self, header: str, count: int) -> Rows:
        most = max((self.registers - count) // (count + (count == 1)), 1)
        whole = -(-self.channels // self.lanes)
        vectors = min(range(1, min(most, MOST_VECTORS, whole) + 1), key=lambda n: (-(-whole // n) * (n + 0.5), -n))
        groups = Groups(TileSize(self.lanes, count, vectors), self.channels)
        headers = zip(groups.headers("c"), groups.parts(), strict=True)
        key, value = self.side(1, count), self.side(2, count)
        mixed = tuple(self.mixed(header, many, last, value) for header, (_, _, many, last) in headers)
        return Rows(header, count, mixed, key, value)

    def side(self, number: int, count: int) -> Side:
        """Of keys, 1, or of values, 2, for tiles of so many rows."""
        view, name = self.call.ins[number], ("", "keys", "values")[number]
        if count > 1 and name in self.room:
            width = (self.depth, self.channels)[number - 1]
            place, apart, stored = index_c([width], [f"(j - {named('first')})"]), str(width), f32
            place = f"{named(name)} + {place}"
        else:
            step, stored = view.strides[-1 if number == 1 else -2], view.buffer.dtype
            place, apart = self.index(number + 1, ("j", step)), index_c([step], ["1"])
            place = f"{named(self.names[number])} + {place}"
        types = f"{narrow(stored)}f32x{self.lanes}"
        return Side(stored.storage_c, place, apart, f"mcc_load_{types}", f"mcc_load_part_{types}")

    def widened(self) -> list[Widened]:
        found = []
        for number, name, width in ((1, "keys", self.depth), (2, "values", self.channels)):
            if name in self.room:
                stored = self.call.ins[number].buffer.dtype
                loops = chunks("at", width, self.lanes)
                moves = [
                    (c.header, c.load(self.lanes, "row", "at", 1, stored), c.store(self.lanes, "wide", "at", "x"))
                    for c in loops
                ]
                found.append(Widened(self.side(number, 1), name, width, tuple(moves)))
        return found

    def scale(self) -> str:
        """The index of the factor of the values of key `first + j`."""
        return self.index(self.kind.fixed, ("first", 1), ("j", 1))

    def mixed(self, header: str, many: int, last: int, value: Side) -> Mixed:
        found = []
        for number in range(many):
            chunk = Chunk("", last if number == many - 1 else self.lanes)
            place = index_c([1, 1], ["c", str(number * self.lanes)])
            stored = self.call.ins[2].buffer.dtype if value.of != "float" else f32
            found.append((chunk.load(self.lanes, named("value"), place, 1, stored), place))
        return Mixed(header, tuple(found))

    def score(self, count: str) -> list[str]:
        """Statements that make scores of the products of as many keys."""
        if self.kind.score is None:
            return []
        loads, lanes = [], self.lanes
        whole = count == str(lanes)
        for number in range(3, 3 + self.kind.operands):
            view, name = self.views[number + 1], named(self.names[number])
            place, across = self.at(number + 1, ("i", -2), ("point", -2), ("j", -1)), static(view.strides[-1])
            if view.buffer.dtype is bool_:
                loads.append(f"mcc_load_mask_i32x{lanes}({name} + {place}, {across}, {count})")
            elif not across:
                loads.append(f"mcc_set_f32x{lanes}({name}[{place}])")
            elif across != 1:
                loads.append(f"mcc_load_apart_f32x{lanes}({name} + {place}, {across}, {count})")
            else:
                part = f"f32x{lanes}({name} + {place}" if whole else f"part_f32x{lanes}({name} + {place}, {count}"
                loads.append(f"mcc_load_{part})")
        lines, value = to_vector_statements(self.kind.score, ["total", *loads], lanes)
        return [*lines, f"total = {value};"]

    def results(self, padded: int) -> list[tuple[str, list[str]]]:
        """What becomes of a row when all keys were met."""
        found = []
        for chunk in chunks("c", self.channels, self.lanes):
            mixed = f"mcc_load_f32x{self.lanes}(mixed + point * {padded} + c)"
            loads = [mixed, "total"]
            for number in range(self.kind.fixed + 1, len(self.views)):
                view, place = self.views[number], self.at(number, ("i", -2), ("point", -2), ("c", -1))
                loads.append(
                    chunk.load(self.lanes, self.names[number - 1], place, static(view.strides[-1]), view.buffer.dtype)
                )
            lines, value = to_vector_statements(self.ended(), loads, self.lanes)
            place, across = self.at(0, ("i", -2), ("point", -2), ("c", -1)), static(self.views[0].strides[-1])
            found.append((chunk.header, [*lines, chunk.store(self.lanes, self.result, place, value, across)]))
        return found

    def ended(self) -> Expr:
        """The result of what was mixed, operand 0, and the sum of exponentials, operand 1."""
        total = operand(1, f32)
        element = apply("div", operand(0, f32), total)
        if self.kind.or_zero:
            element = apply("select", apply("greater", total, literal(0, f32)), element, literal(0, f32))
        extras = self.call.ins[self.kind.fixed :]
        inner = {number: operand(number + 1, view.buffer.dtype) for number, view in enumerate(extras, 1)}
        return element if self.kind.epilogue is None else substitute(self.kind.epilogue, {0: element, **inner})
