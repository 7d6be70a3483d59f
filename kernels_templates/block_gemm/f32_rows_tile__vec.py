"""block_gemm in vectors along the columns for many rows: weights of one tile of columns and a piece of the sum are
unpacked into the workspace, then multiplied with some of the rows, tile by tile.

What earlier pieces of a sum come to waits in the workspace too; the last piece adds it, and computes the epilogue. One
row is computed without unpacking where their number is known only at run time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import Dim, bounds, static, upper
from mccompile.base.dtypes import bool_, f32
from mccompile.base.marked import named
from mccompile.base.records import dataclass
from mccompile.codegen.blocks.block_digits import digit_headers, digits_of
from mccompile.codegen.blocks.block_few import few_rows, room
from mccompile.codegen.blocks.block_weights import case_of, cases, kind_of, vector_refusal_of
from mccompile.codegen.blocks.block_words import BlockRun, WordLayout, WordsKernel
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.vector.vector_epilogue import Reference, epilogue_statements
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import (
    Pass,
    Taps,
    Tile,
    TileSize,
    best_tile,
    is_long,
    row_cycles,
    taken_together,
)
from mccompile.expr.dims_c import dim_c
from mccompile.expr.ir import Expr, apply, operand, rebuild
from mccompile.expr.vector_c import refusals
from mccompile.kernels.api import Call, Case, Cost, Needs, No, SizedCase, Target, static_views
from mccompile.kernels.work import Units
from mccompile.kinds.block_gemm import BlockGemm

PIECE = 256  # elements of a sum that are unpacked at once, about
ROWS = 64  # rows that unpacked weights are multiplied with, about
FLOAT = 4


@dataclass(frozen=True)
class Piece:
    """A part of the sum: its blocks, and tiles of rows: whole ones and what is left over, as far as there are any."""

    stretches: tuple[BlockRun, ...]
    tiles: tuple[tuple[str, Tile], ...]  # C that opens the loop over them


@dataclass(frozen=True)
class Group:
    """Tiles along the columns."""

    header: str
    vectors: int
    pieces: tuple[Piece, ...]  # one for all but the last one, where there are several; the last one


class RowsTile(WordsKernel):
    kind = BlockGemm

    def cases(self) -> Sequence[Case]:
        return cases()

    def sized_cases(self) -> Sequence[SizedCase]:
        return [block_gemm]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = kind_of(call)
        inner = (call.ins[0].shape[1], *(stride for view in (*call.ins, *call.outs) for stride in view.strides))
        reason = "" if all(isinstance(dim, int) for dim in inner) else static_views(call)
        reason = reason or vector_refusal_of(call, target) or refusals(kind.expressions(), f32, (bool_,))
        if reason:
            return No(reason)
        size = _best(call, target)
        digits = digits_of(call, size, target)
        layout = _Layout(call, size, digits)
        return Needs(
            alias=epilogue_alias(call, kind.fixed),
            align={1: size.lanes * FLOAT},
            constant=frozenset(range(1, kind.fixed)),
            numeric="ulp",
            scratch=layout.scratch,
            scratch_align=64,
            symbols=True,
            blocks=(size.lanes, size.points, size.vectors, size.together, digits),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        size, (depth, columns) = _best(call, target), map(static, call.ins[1].shape)
        rows = upper(call.ins[0].shape[0])
        vectors = -(-columns // size.lanes)
        cycles = row_cycles(size, rows, columns, depth, target) + -(-rows // ROWS) * depth * vectors * 2.2
        return Cost(cycles, code=1000 + 80 * size.points * size.vectors)

    def headers(self, call: Call) -> frozenset[str]:
        return super().headers(call) | digit_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        units = Units()
        Groups(self.size(call), static(call.outs[0].shape[1])).headers("j", units)
        return units.sizes

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call, self.size(call), call.blocks[-1]).context(self.parameter_names(call)[1])


class _Layout:
    """Loops and C of indices. Counters: first and end of some rows, i row, j first column of a tile, piece."""

    def __init__(self, call: Call, size: TileSize, digits: int) -> None:
        self.call, self.size, self.words, self.kind = call, size, WordLayout(call, size), kind_of(call)
        self.digits = digits
        self.rows = call.ins[0].shape[0]
        self.each = max(PIECE // self.words.block, 1)  # blocks of a piece
        self.pieces = -(-self.words.blocks // self.each)
        self.depth = min(self.each * self.words.block, self.words.depth)
        self.is_cut = self.pieces > 1
        self.one = replace(size, points=1)
        self.may_be_one = not isinstance(self.rows, int) and bounds(self.rows)[0] <= 1
        self.rows_at_once = min(-(-ROWS // size.points) * size.points, upper(self.rows))

    @property
    def scratch(self) -> int:
        tiles = (self.depth + self.rows_at_once * self.is_cut) * self.size.channels * FLOAT
        return max(tiles, room(self.call, self.one, self.digits)) if self.may_be_one else tiles

    def context(self, names: Sequence[str]) -> dict[str, Any]:
        units = Units() if self.call.workers > 1 else None
        groups = self.words.groups
        headers = zip(groups.headers("j", units), groups.parts(), strict=True)
        lanes = self.size.lanes
        return {
            "words": self.words,
            "of": f"f32x{lanes}",
            "groups": [self.group(names, header, vectors, last) for header, (_, _, vectors, last) in headers],
            "some": Range.over("first", self.rows, step=self.rows_at_once).header,
            "stop": f"first + {self.rows_at_once}",
            "rows": dim_c(self.rows),
            "layout": self,
            "scope": ["piece", "first", "stop", "j", "float *panel", *(["float *partial"] if self.is_cut else [])],
            "f": few_rows(self.call, self.one, names, self.digits) if self.may_be_one else None,
            "panel": self.depth * self.size.channels,
        }

    def group(self, names: Sequence[str], header: str, vectors: int, last: int) -> Group:
        before = tuple(self.words.cut(0, self.each)) if self.is_cut else ()
        final = tuple(self.words.cut((self.pieces - 1) * self.each, self.words.blocks))
        pieces = [(before, False)] * self.is_cut + [(final, True)]
        return Group(header, vectors, tuple(Piece(s, self.tiles(names, vectors, last, end)) for s, end in pieces))

    def tiles(self, names: Sequence[str], vectors: int, last: int, final: bool) -> tuple[tuple[str, Tile], ...]:
        points = self.size.points
        left: Dim = self.rows % points
        stop = named("stop")
        found = []
        if upper(self.rows) >= points:
            found.append(
                (f"for (; i + {points} <= {stop}; i += {points}) {{", self.tile(names, points, vectors, last, final))
            )
        if not isinstance(left, int):
            found.append((f"for (; i < {stop}; ++i) {{", self.tile(names, 1, vectors, last, final)))
        elif left:
            found.append((f"if (i < {stop}) {{", self.tile(names, left, vectors, last, final)))
        return tuple(found)

    def tile(self, names: Sequence[str], points: int, vectors: int, last: int, final: bool) -> Tile:
        lanes, size = self.size.lanes, replace(self.size, points=points)
        wide = vectors * lanes

        def reference(view: Any, name: str) -> Reference:
            down, across = (static(stride) for stride in view.strides)
            index = index_c([down, across], ["i", "j"])
            return Reference(name, index, down if points > 1 else 0, across, stored=view.buffer.dtype)

        sums = Reference("partial", index_c([wide], [f"({named('i')} - {named('first')})"]), wide, 1)
        pairs = list(zip(self.call.ins, names, strict=True))[self.kind.fixed :]
        extras = [reference(view, name) for view, name in pairs] if final else []
        y = reference(self.call.outs[0], "y") if final else sums
        expr = self.kind.epilogue if final else None
        if self.is_cut:
            extras, expr = [*extras, sums], _added(expr, len(extras) + 1)
        down, along = (static(stride) for stride in self.call.ins[0].strides)
        begin = (self.pieces - 1) * self.each * self.words.block
        depth = self.words.depth - begin if final else self.depth
        at = (
            index_c([down, along], ["i", "k"], begin * along)
            if final
            else index_c([down, along * self.depth, along], ["i", "piece", "k"])
        )
        taps = Taps(tuple(range(points)), (Range("k", depth),), at, index_c([wide], ["k"]))
        together = taken_together(taps, size.together, wide)
        passes = (Pass((), together),)
        of = (lanes, points, vectors, last if final else lanes)
        epilogue = epilogue_statements(expr, *of, y, extras, sums=True, long=is_long(passes, points, vectors))
        return Tile(lanes, points, vectors, down, passes, epilogue)


def _added(expr: Expr | None, number: int) -> Expr:
    """The epilogue of a sum that another operand is a part of."""
    whole = apply("add", operand(0, f32), operand(number, f32))
    return whole if expr is None else rebuild(expr, lambda node: whole if node == operand(0, f32) else None)


def _best(call: Call, target: Target) -> TileSize:
    (rows, depth), columns = call.ins[0].shape, static(call.ins[1].shape[1])
    down, along = (static(stride) for stride in call.ins[0].strides)
    run = min(static(depth), PIECE) if along == 1 else 1
    return best_tile(upper(rows), columns, static(depth), abs(down) * FLOAT, target, call.workers, run)


def block_gemm(rows: int, depth: int, columns: int) -> Case:
    return case_of(f"{rows}_{depth}_{columns}", (rows, depth, columns), "u4", 7, True)
