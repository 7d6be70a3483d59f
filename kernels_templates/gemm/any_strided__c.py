"""gemm in portable C: a tile of rows x columns in registers, any strides, so transposed and broadcast operands are
nothing special.

Rows and columns that are left over get tiles of their own size: no tests inside. A matrix times a vector is a tile of
one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import static, upper
from mccompile.base.dtypes import bf16, f16, f32, f64, i8, i32, i64, u8, u32
from mccompile.base.records import dataclass
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import index_c, nest, size_name
from mccompile.codegen.packed_lanes import pack_rows, packed_lane_c, packed_row
from mccompile.codegen.rows import row_by_row
from mccompile.codegen.tiles import (
    Product,
    Range,
    Tile,
    best_cover,
    cut_sum,
    epilogue_alias,
    is_constant,
    moved,
    parts,
    term_c,
)
from mccompile.codegen.traffic import of_results
from mccompile.expr.ir import cast, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, View, supports_types, viewed
from mccompile.kernels.column_tiles import ColumnTiles
from mccompile.kinds.gemm import Gemm


@dataclass(frozen=True)
class Block:
    """What the template prints for one part of the result and its size of tile."""

    outer: str  # opens a loop over columns or rows, or says where the part starts
    inner: str
    tile: Tile
    zeros: tuple[tuple[str, str], ...]  # name, value
    loads: tuple[tuple[str, str], ...]
    products: tuple[Product, ...]
    lines: tuple[str, ...]
    store: str


class Strided(Kernel):
    kind = Gemm
    branches = ""

    def cases(self) -> Sequence[Case]:
        plain = Gemm(f32)
        cases = [
            _case("square", plain, (8, 12), (12, 8)),
            _case("odd", plain, (7, 5), (5, 11)),
            _case("vector", plain, (1, 40), (40, 37)),
            _case("vector_transposed", plain, (1, 40), (40, 24), permute={1: (1, 0)}),
            _case("column", plain, (23, 9), (9, 1)),
            _case("dot", plain, (1, 9), (9, 1)),
            _case("outer", plain, (9, 1), (1, 6)),
            _case("transposed", plain, (6, 7), (7, 5), permute={0: (1, 0), 1: (1, 0)}),
            _case("batches", plain, (2, 3, 4, 5), (2, 3, 5, 7), permute={0: (0, 2, 1, 3), 1: (0, 2, 1, 3)}),
            _case("long_sum", plain, (3, 5000), (5000, 5)),
            _case("nothing_to_add", plain, (3, 0), (0, 5)),
            _case("empty", plain, (0, 3), (3, 5)),
            _case("packed", plain, (5, 6), (6, 21), constant=True),
            _case("packed_vector", plain, (1, 40), (40, 37), constant=True),
            _case("packed_transposed", plain, (3, 17), (17, 16), permute={1: (1, 0)}, constant=True),
            _case("constant_batches", plain, (2, 3, 4), (2, 4, 5), constant=True),
            _case("packed_long_sum", plain, (3, 1500), (1500, 5), constant=True),
            _case("epilogue", replace(plain, epilogue=RELU_OF_SUM), (5, 6), (6, 9), extras=1),
            _case("f64", Gemm(f64), (5, 6), (6, 9), dtype=f64),
            _case("i32", Gemm(i32), (5, 6), (6, 9), dtype=i32, span=2**31 - 1),
            _case("i64", Gemm(i64), (5, 6), (6, 9), dtype=i64),
            _case("u32", Gemm(u32), (5, 6), (6, 9), dtype=u32),
        ]
        for dtype in (f16, bf16):
            cases.append(_case(dtype.name, Gemm(f32, cast(operand(0, f32), dtype)), (5, 6), (6, 9), dtype=dtype))
        mixed = (TensorType(f32, (5, 6)), TensorType(i8, (6, 9)))
        for name, constants in (("bytes", frozenset[int]()), ("packed_bytes", frozenset({1}))):
            out = (TensorType(f32, (5, 9)),)
            cases.append(Case(name, plain, mixed, out, constant=constants, ranges={1: (-128.0, 127.0)}))
        ins = (TensorType(u8, (2, 5, 6)), TensorType(i8, (2, 6, 9)), TensorType(u8, (2, 5)), TensorType(i8, (2, 9)))
        ranges = {0: (0.0, 255.0), 1: (-128.0, 127.0), 2: (0.0, 255.0), 3: (-9.0, 9.0)}
        integers = Gemm(i32, a_zero=True, b_zero=True)
        cases.append(Case("integers", integers, ins, (TensorType(i32, (2, 5, 9)),), ranges=ranges))
        return cases

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = supports_types(call)
        if reason:
            return No(reason)
        by_rows = call.of(Gemm).fixed == 2 and call.outs[0].shape[-2] != 0
        rows = frozenset({len(call.outs[0].shape) - 2} if by_rows else ())
        return Needs(alias=epilogue_alias(call, call.of(Gemm).fixed), symbols=True, rows=rows)

    def cost(self, call: Call, target: Target) -> Cost:
        machine = target.machine
        time = upper(call.macs) * machine.mac + of_results(call, target)
        return Cost(time, code=500)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        if not _is_packed(call):
            return {}
        b = viewed(call.ins[1], constants[1])
        return {1: pack_rows(b.reshape(-1, *b.shape[-2:])[0], self.printer(call).row)}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {1: f"rows_of_{self.printer(call).row}_columns"} if _is_packed(call) else {}

    def column_tiles(self, call: Call) -> Mapping[int, Sequence[ColumnTiles]]:
        if not _is_packed(call):
            return {}
        depth, columns = map(static, call.ins[1].shape[-2:])
        return {1: [ColumnTiles(0, columns, self.printer(call).row, depth)]}

    def printer(self, call: Call) -> _Printer:
        return _Printer(call, *self.parameter_names(call))

    def label(self, call: Call) -> str:
        a, b = call.ins[:2]
        sizes = "x".join(map(size_name, (a.shape[-2], a.shape[-1], b.shape[-1])))
        return "_".join(["gemm", *map(size_name, call.outs[0].shape[:-2]), sizes])

    def context(self, call: Call) -> Mapping[str, Any]:
        return self.printer(call).context()


class _Printer:
    """Works out the loops and the text of every index for one call. Counters: n0.. batches, i row, j column, k along
    the sum."""

    def __init__(self, call: Call, results: list[str], names: list[str]) -> None:
        by_rows = row_by_row(call, results, names, whole=(1,))
        self.pointers, self.result, self.names = by_rows.pointers, by_rows.out_names[0], by_rows.in_names
        self.by_rows = call.rows is not None
        self.call = call = replace(call, ins=by_rows.ins, outs=by_rows.outs)
        self.kind = call.of(Gemm)
        self.a, self.b, self.y = call.ins[0], call.ins[1], call.outs[0]
        self.rows, self.columns = self.y.shape[-2:]
        zeros = call.ins[2 : self.kind.fixed]
        self.a_zero = zeros[0] if self.kind.a_zero else None
        self.b_zero = zeros[-1] if self.kind.b_zero else None
        self.views = [self.y, *call.ins]
        self.depth = self.a.shape[-1]
        self.packed = _is_packed(call)
        self.tile = best_cover(upper(self.rows), upper(self.columns))
        self.row = packed_row(upper(self.columns), self.tile)
        self.batches = nest(self.y.shape[:-2], self.views, prefix="n")

    def context(self) -> dict[str, Any]:
        total = self.kind.accumulator
        around, inside = cut_sum([Range.over("k", self.depth)] if self.depth != 1 else [], total)
        step = "k" if self.depth != 1 else "0"
        return {
            "batches": [Range.over(loop.counter, loop.count) for loop in self.batches.loops],
            "blocks": self.blocks(),
            "by_rows": self.by_rows,
            "pointers": self.pointers,
            "around": around,
            "inside": inside,
            "sum_type": total.compute_c,
            "sum_name": total.name,
            "exact": not total.is_float,
            "a_in": index_c([1, *self.a.strides[-2:]], [self.batches.index(1), "i", step]),
            "b_in": self.b_in(step),
        }

    def b_in(self, step: str) -> str:
        batch = self.batches.index(2)
        if self.packed:
            column = packed_lane_c("j", static(self.columns), self.row, static(self.depth))
            return index_c([1, 1, self.row], [batch, column, step])
        return index_c([1, self.b.strides[-1], self.b.strides[-2]], [batch, "j", step])

    def blocks(self) -> list[Block]:
        """The parts of the result, with whatever is longer in the outer loop: its operand is read once."""
        tile = self.tile
        rows = parts("i", self.rows, tile.points)
        columns = parts("j", self.columns, tile.lanes)
        if upper(self.columns) >= upper(self.rows):
            return [self.block(column, row, Tile(high, wide)) for column, wide in columns for row, high in rows]
        return [self.block(row, column, Tile(high, wide)) for row, high in rows for column, wide in columns]

    def block(self, outer: str, inner: str, tile: Tile) -> Block:
        total = self.kind.accumulator
        b_lane = 1 if self.packed else self.b.strides[-1]
        zeros: list[tuple[str, str]] = []
        loads: list[tuple[str, str]] = []
        for point in range(tile.points):
            zero = self.zero("zero_a", "a_zero", self.a_zero, "i", point, zeros)
            at = moved("a_in", point * self.a.strides[-2])
            loads.append((f"a_{point}", term_c(self.a.buffer.dtype, self.names[0], at, total, zero)))
        for lane in range(tile.lanes):
            zero = self.zero("zero_b", "b_zero", self.b_zero, "j", lane, zeros)
            at = moved("b_in", lane * b_lane)
            loads.append((f"b_{lane}", term_c(self.b.buffer.dtype, "b", at, total, zero)))
        products = [
            Product(tile.result(lane, point), f"a_{point}", f"b_{lane}")
            for lane in range(tile.lanes)
            for point in range(tile.points)
        ]
        lines, store = self.epilogue(tile)
        return Block(outer, inner, tile, tuple(zeros), tuple(loads), tuple(products), tuple(lines), store)

    def zero(
        self, name: str, pointer: str, view: View | None, counter: str, step: int, zeros: list[tuple[str, str]]
    ) -> str:
        """The name of a zero point, noted in `zeros`, once where all have the same; no name where there is none."""
        if view is None:
            return ""
        number = 1 + next(i for i, other in enumerate(self.call.ins) if i >= 2 and other is view)
        stride = view.strides[-1]
        at = index_c([1, stride, stride], [self.batches.index(number), counter, str(step)])
        own = name if stride == 0 else f"{name}{step}"
        noted = own, term_c(view.buffer.dtype, pointer, at, self.kind.accumulator)
        if noted not in zeros:
            zeros.append(noted)
        return own

    def epilogue(self, tile: Tile) -> tuple[list[str], str]:
        """Statements for one result of a tile, at `lane` and `point`."""
        counters = ["i", "0" if tile.points == 1 else "point", "j", "0" if tile.lanes == 1 else "lane"]

        def at(number: int) -> str:
            row, column = self.views[number].strides[-2:]
            return index_c([1, row, row, column, column], [self.batches.index(number), *counters])

        fixed = self.kind.fixed
        loads = [
            load_c(view.buffer.dtype, self.names[number], at(number + 1))
            for number, view in enumerate(self.call.ins)
            if number >= fixed
        ]
        expr = self.kind.epilogue or operand(0, self.kind.accumulator)
        lines, value = to_statements(expr, ["total", *loads], local="v")
        return lines, store_c(self.y.buffer.dtype, self.result, at(0), value)


def _is_packed(call: Call) -> bool:
    """A constant matrix is packed, if it is one and the same for every batch."""
    b = call.ins[1]
    one = all(dim == 1 or stride == 0 for dim, stride in zip(b.shape[:-2], b.strides[:-2], strict=True))
    return one and is_constant(b) and 0 not in b.shape


def _case(name: str, kind: Gemm, a: Shape, b: Shape, span: float = 2, **more: Any) -> Case:
    ranges = {0: (-span, span), 1: (-span, span)}
    return Case.of_one_type(name, kind, (a, b), (*a[:-1], b[-1]), ranges=ranges, **more)
