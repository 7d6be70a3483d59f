"""block_gemm where activations may be rounded: to int8 in each block of the sum, with its largest element as 127. Some
rows are rounded at once, into the workspace, then multiplied tile by tile with weights that are unpacked to bytes where
they lie; the sums of a block are whole numbers, which are multiplied with both scales.

A block that holds NaN or an infinity makes the row's results NaN; one whose elements are all tiny counts as zeros.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.dims import Dim, static, upper
from mccompile.base.dtypes import bool_, f32
from mccompile.base.marked import named
from mccompile.base.records import dataclass
from mccompile.codegen.blocks.block_bytes import Bytes
from mccompile.codegen.blocks.block_weights import case_of, cases, kind_of, label, rounded, vector_refusal_of
from mccompile.codegen.blocks.block_words import WordsKernel
from mccompile.codegen.int8.dot_forms import TERMS, form_of
from mccompile.codegen.int8.dot_tiles import SHIFT, dot_headers, dot_lanes, dot_refusal, sum_registers
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.vector.vector_epilogue import Epilogue, Reference, epilogue_statements
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_tiles import TileSize
from mccompile.expr.dims_c import dim_c
from mccompile.expr.vector_c import refusals
from mccompile.kernels.api import Call, Case, Cost, Needs, No, SizedCase, Target, static_views
from mccompile.kernels.work import Units
from mccompile.kinds.block_gemm import BlockGemm

ROWS = 64  # that are rounded at once, about
MOST_ROWS, MOST_VECTORS = 8, 4  # of a tile
SPARE = 2  # registers for what comes by
LONGEST = 1 << 15  # elements of a block, whose sum fits 32 bits
TERMS_INSTRUCTIONS = 16  # of a vector of products, where machines multiply by one number
NUMBER = 4  # bytes of a scale or a sum


@dataclass(frozen=True)
class Tile:
    points: int
    epilogue: Epilogue


@dataclass(frozen=True)
class Group:
    """Tiles along the columns: whole ones of rows and what is left over, as far as there are any."""

    header: str
    vectors: int
    tiles: tuple[tuple[str, Tile], ...]  # C that opens the loop over them
    words: list[str]  # declarations of the words of its vectors


class RowsRounded(WordsKernel):
    kind = BlockGemm
    rounds = True

    def cases(self) -> Sequence[Case]:
        found = [case for case in cases() if 0 not in case.permute]
        found += [case_of(f"block_{n}", (9, 2 * n + 5, 35), "u4", n, n == 64) for n in (16, 64, 256)]
        odd = case_of("odd_numbers", (6, 96, 20), "i4", 32, False)
        a = np.linspace(-3, 3, 6 * 96, dtype=np.float32).reshape(6, 96)
        a[0, :32], a[1, 40], a[2, 70], a[3, 5], a[4] = 0, np.nan, np.inf, -np.inf, a[4] * np.float32(1e-33)
        ones = np.repeat(np.array([[1], [-1]], np.float32), 96, 1)
        fullest = replace(
            case_of("fullest", (2, 96, 20), "i4", 32, True), values={0: ones, 1: np.full((96, 20), 7, np.int8)}
        )
        return [rounded(case) for case in (*found, replace(odd, values={0: a}), fullest)]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [block_gemm_rounded]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = kind_of(call)
        if not kind.rounds:
            return No("activations may not be rounded")
        inner = (call.ins[0].shape[1], *(stride for view in (*call.ins, *call.outs) for stride in view.strides))
        reason = "" if all(isinstance(dim, int) for dim in inner) else static_views(call)
        reason = reason or vector_refusal_of(call, target) or refusals(kind.expressions(), f32, (bool_,))
        reason = reason or dot_refusal(target)
        if reason:
            return No(reason)
        if call.ins[0].strides[1] != 1 and call.ins[0].shape[1] != 1:
            return No("elements of a row are not contiguous")
        if min(kind.block, static(call.ins[0].shape[1])) > LONGEST:
            return No(f"blocks are longer than {LONGEST} elements")
        size = _size(call, target)
        signed = target.option("dot_signed", 0) or form_of(target) is TERMS
        shift = SHIFT if signed and call.ins[1].buffer.dtype.bits == 8 else 0
        layout = Bytes(call, size, shift)
        return Needs(
            alias=epilogue_alias(call, kind.fixed),
            align={1: size.lanes * NUMBER},
            constant=frozenset(range(1, kind.fixed)),
            numeric="ulp",
            scratch=_rows_at_once(call, size) * layout.row_bytes + layout.slack,
            scratch_align=64,
            symbols=True,
            blocks=(size.lanes, size.points, size.vectors, shift),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        size, columns = _size(call, target), static(call.ins[1].shape[1])
        layout = Bytes(call, size, 0)
        rows = upper(call.ins[0].shape[0])
        vectors, words = -(-columns // size.lanes), layout.words.words
        unpacking = words * (1 + 1.5 * layout.steps) + 3 * layout.words.blocks
        each = TERMS_INSTRUCTIONS if form_of(target) is TERMS else target.option("dot_instructions", 1)
        products = each * words * layout.steps + 3.5 * layout.words.blocks
        rounding = rows * (3.0 * layout.row_bytes / size.lanes + 25 * layout.words.blocks)
        cycles = vectors * (-(-rows // size.points) * unpacking + rows * products) + rounding
        return Cost(cycles, code=1000 + 80 * size.points * size.vectors)

    def label(self, call: Call) -> str:
        return f"{label(call)}_rounded"

    def headers(self, call: Call) -> frozenset[str]:
        return super().headers(call) | dot_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        units = Units()
        Groups(self.size(call), static(call.outs[0].shape[1])).headers("j", units)
        return units.sizes

    def context(self, call: Call) -> Mapping[str, Any]:
        size = self.size(call)
        layout = Bytes(call, size, call.blocks[-1])
        names, rows = self.parameter_names(call)[1], call.ins[0].shape[0]
        units = Units() if call.workers > 1 else None
        groups = layout.words.groups
        at_once = _rows_at_once(call, size)
        pairs = zip(groups.headers("j", units), groups.parts(), strict=True)
        return {
            "layout": layout,
            "words": layout.words,
            "lanes": size.lanes,
            "of": f"f32x{size.lanes}",
            "sums": f"i32x{size.lanes}",
            "groups": [_group(call, names, size, header, vectors, last) for header, (_, _, vectors, last) in pairs],
            "some": Range.over("first", rows, step=at_once).header,
            "at_once": at_once,
            "rows": dim_c(rows),
            "down": static(call.ins[0].strides[0]),
        }


def _rows_at_once(call: Call, size: TileSize) -> int:
    return min(-(-ROWS // size.points) * size.points, upper(call.ins[0].shape[0]))


def _group(call: Call, names: Sequence[str], size: TileSize, header: str, vectors: int, last: int) -> Group:
    rows, points = call.ins[0].shape[0], size.points
    left: Dim = rows % points
    stop = named("stop")
    found = []

    def tile(points: int) -> Tile:
        return Tile(points, _epilogue(call, names, replace(size, points=points), vectors, last))

    if upper(rows) >= points:
        found.append((f"for (; i + {points} <= {stop}; i += {points}) {{", tile(points)))
    if not isinstance(left, int):
        found.append((f"for (; i < {stop}; ++i) {{", tile(1)))
    elif left:
        found.append((f"if (i < {stop}) {{", tile(left)))
    return Group(header, vectors, tuple(found), [f"mcc_i32x{size.lanes} u{vector}" for vector in range(vectors)])


def _epilogue(call: Call, names: Sequence[str], size: TileSize, vectors: int, last: int) -> Epilogue:
    def reference(view: Any, name: str) -> Reference:
        down, across = (static(stride) for stride in view.strides)
        index = index_c([down, across], ["i", "j"])
        return Reference(name, index, down if size.points > 1 else 0, across, stored=view.buffer.dtype)

    kind = kind_of(call)
    extras = [reference(view, name) for view, name in list(zip(call.ins, names, strict=True))[kind.fixed :]]
    of = (size.lanes, size.points, vectors, last)
    return epilogue_statements(kind.epilogue, *of, reference(call.outs[0], "y"), extras, sums=True, long=True)


def _size(call: Call, target: Target) -> TileSize:
    """Sums of a block and totals of each row, and the numbers of a word, in registers."""
    rows, columns = upper(call.ins[0].shape[0]), static(call.ins[1].shape[1])
    lanes = dot_lanes(target)
    wanted = -(-columns // (lanes * call.workers))
    sizes = [
        TileSize(lanes, points, vectors)
        for points in range(1, min(rows, MOST_ROWS) + 1)
        for vectors in range(1, min(wanted, MOST_VECTORS) + 1)
        if points * vectors == 1 or 2 * points * vectors + 2 * vectors + SPARE <= sum_registers(target)
    ]

    def effort(size: TileSize) -> float:
        tiles = -(-rows // size.points) * -(-wanted // size.vectors)
        each = 1.25 * size.points * size.vectors + 2 * size.vectors + 0.25 * size.points + 0.5
        return tiles * each * (1 + 0.02 * bool(rows % size.points))

    return min(sizes, key=lambda size: (effort(size), -size.points))


def block_gemm_rounded(rows: int, depth: int, columns: int) -> Case:
    return rounded(case_of(f"{rows}_{depth}_{columns}", (rows, depth, columns), "u4", 7, True))
