"""gemm in vectors along the columns of the result: tiles of rows x vectors.

The right operand is packed into panels as wide as a tile: by the compiler where it is constant, at run time in the
workspace where its columns do not lie side by side; else it is read as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from mccompile.base.constant import Constant
from mccompile.base.dims import Dim, static, upper
from mccompile.base.dtypes import bf16, bool_, f16, f32, i8
from mccompile.base.records import dataclass
from mccompile.base.summation_error import SHORT
from mccompile.base.tensor import Shape, TensorType, dense_strides
from mccompile.codegen.cases import RELU_OF_SUM
from mccompile.codegen.loops import index_c, nest, size_name
from mccompile.codegen.tiles import Range, epilogue_alias
from mccompile.codegen.traffic import has_traffic
from mccompile.codegen.vector.vector_epilogue import Reference, epilogue_statements
from mccompile.codegen.vector.vector_groups import Groups
from mccompile.codegen.vector.vector_runs import Run, cutting, longest_run, of_sums, runs
from mccompile.codegen.vector.vector_tiles import (
    HALF_RELU,
    WITH_BYTES,
    Group,
    Part,
    Pass,
    Taps,
    Tile,
    TileSize,
    best_tile,
    computed_in,
    fetched_ahead,
    in_halves,
    is_long,
    products_refusal,
    row_cycles,
    taken_together,
    vector_headers,
    vector_refusal,
)
from mccompile.expr.dims_c import dim_c
from mccompile.expr.ir import apply, literal, operand
from mccompile.expr.vector_c import refusals
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, View, viewed
from mccompile.kernels.column_tiles import ColumnTiles, column_tiles
from mccompile.kernels.work import Units, slowest
from mccompile.kinds.gemm import Gemm

PACKED, AS_IT_IS, TURNED, PACKED_EACH, TRANSPOSED = range(5)  # how the right operand is read
AT_RUN_TIME = (TURNED, TRANSPOSED)  # packed into the workspace: element by element, or in square tiles
HELD = 1 << 14  # bytes that the nearest cache surely keeps
FAR = 1 << 17  # bytes that it surely does not
NOT_CUT, BY_BATCHES, BY_COLUMNS, BY_ROWS = range(4)  # how the work is cut for several workers


@dataclass(frozen=True)
class Columns(Group):
    """Tiles along the columns: `step` apart, of which `columns` count."""

    step: int
    columns: int


class RowsTile(Kernel):
    kind = Gemm
    branches = ""

    def cases(self) -> Sequence[Case]:
        plain = Gemm(f32)
        sizes = [(1, 1, 2), (2, 3, 7), (3, 7, 15), (7, 15, 16), (15, 16, 17), (16, 31, 31), (17, 33, 33), (33, 5, 100)]
        turned = {1: (1, 0)}
        cases = [_case(f"packed_{m}x{k}x{n}", plain, (m, k), (k, n), constant=True) for m, k, n in sizes]
        cases += [_case(f"direct_{m}x{k}x{n}", plain, (m, k), (k, n)) for m, k, n in sizes]
        cases += [_case(f"turned_{m}x{k}x{n}", plain, (m, k), (k, n), permute=turned) for m, k, n in sizes]
        flat = ("rows_first", plain, (299, 3), (3, 117))
        cases += [_case(*flat), _case("rows_first_packed", *flat[1:], constant=True)]
        batches = ((2, 3, 4, 5), (2, 3, 5, 7))
        cases += [
            _case("packed_transposed", plain, (6, 7), (7, 50), permute={0: (1, 0), **turned}, constant=True),
            _case("long_sum", plain, (3, 3000), (3000, 9), constant=True),
            _case("batches", plain, *batches, permute={0: (0, 2, 1, 3), 1: (0, 2, 1, 3)}),
            _case("turned_far", plain, (5, 19), (19, 67), permute=turned),
            _case("batches_turned", plain, *batches, permute={0: (0, 2, 1, 3), 1: (0, 2, 3, 1)}),
            _case("batches_constant", plain, *batches, constant=True),
            replace(_case("one_for_all", plain, *batches, constant=True), repeated={1: (0, 1)}),
        ]
        for dtype in (f16, bf16, i8):
            case = _case(f"weights_{dtype}", plain, (9, 6), (6, 37), constant=True)
            cases.append(replace(case, ins=(case.ins[0], TensorType(dtype, (6, 37)))))
        for name, repeated in (("bias", (0,)), ("scalar", (0, 1)), ("per_row", (1,)), ("residual", ())):
            case = _case(f"epilogue_{name}", replace(plain, epilogue=RELU_OF_SUM), (9, 6), (6, 19), constant=True)
            cases.append(replace(case, ins=(*case.ins, case.outs[0]), repeated={2: repeated}))
        chosen = apply("select", operand(1, bool_), operand(0, f32), literal(-7, f32))
        masked = _case("mask", replace(plain, epilogue=chosen), (9, 6), (6, 19), constant=True)
        masked = replace(masked, ins=(*masked.ins, TensorType(bool_, (9, 19))))
        residual = _case("residual_across", replace(plain, epilogue=RELU_OF_SUM), (9, 6), (6, 19), constant=True)
        residual = replace(residual, ins=(*residual.ins, *residual.outs), permute={2: (1, 0)})
        cases += [
            masked,
            replace(masked, name="mask_of_rows", repeated={2: (1,)}),
            replace(masked, name="mask_of_columns", repeated={2: (0,)}),
            replace(masked, name="mask_across", permute={2: (1, 0)}),
            residual,
            replace(residual, name="all_across", permute_outs={0: (1, 0)}),
        ]
        x, one = operand(0, f32), literal(1, f32)
        silu = apply("div", x, apply("add", one, apply("exp", apply("neg", x))))
        half = Gemm(f32, HALF_RELU)
        cases.append(in_halves(_case("half", half, (13, 21), (21, 19), constant=True)))
        cases.append(in_halves(_case("half_direct", half, (9, 50), (50, 19))))
        cases.append(in_halves(_case("half_turned", half, (9, 50), (50, 19), permute=turned)))
        cases.append(in_halves(_case("half_pieces", half, (5, 144), (144, 19), constant=True)))
        cases.append(_case("epilogue_silu", replace(plain, epilogue=silu), (9, 6), (6, 35), constant=True))
        short = Gemm(f32, rounding=SHORT)
        biased = _case("runs_bias", replace(short, epilogue=RELU_OF_SUM), (9, 70), (70, 19), constant=True)
        return [
            *cases,
            _case("runs", short, (1, 67), (67, 50), constant=True),
            _case("runs_direct", short, (9, 50), (50, 19)),
            _case("runs_turned", short, (5, 35), (35, 21), permute=turned),
            replace(biased, ins=(*biased.ins, *biased.outs), repeated={2: (0,)}),
            _case("runs_long", short, (29, 131), (131, 100), constant=True),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [gemm, gemm_direct]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, y = call.of(Gemm), call.outs[0]
        reason = vector_refusal(target) or _sizes_refusal(call) or products_refusal(call, target, True, WITH_BYTES)
        reason = reason or refusals(kind.expressions(), computed_in(call), (bool_,))
        if reason:
            return No(reason)
        if kind.a_zero or kind.b_zero:
            return No("not with zero points")
        if call.ins[1].buffer.dtype is not computed_in(call) and _reading(call, target) not in (PACKED, PACKED_EACH):
            return No("it has no layout for 4-bit weights")
        if 0 in (*y.shape, *call.ins[0].shape):
            return No("the result is empty")
        if y.shape[-1] == 1:
            return No("there is one column")
        if computed_in(call) is f16 and _apart(call):
            return No("columns of the result or an operand of the epilogue are not contiguous")
        (size, cut), how = _best(call, target), _reading(call, target)
        return Needs(
            alias=epilogue_alias(call, kind.fixed),
            constant=frozenset({1}) if how in (PACKED, PACKED_EACH) else frozenset(),
            numeric="ulp",
            scratch=static(call.ins[0].shape[-1]) * size.channels * 4 if how in AT_RUN_TIME else 0,
            scratch_align=64,
            blocks=(size.lanes, size.points, size.vectors, size.together, how, cut),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        (size, _), y = _best(call, target), call.outs[0]
        rows, columns = upper(y.shape[-2]), static(y.shape[-1])
        depth = static(call.ins[0].shape[-1])
        cycles = row_cycles(size, rows, columns, depth, target) * cutting(depth, call.of(Gemm).rounding)
        cycles += depth * columns * {TURNED: 1.2, TRANSPOSED: 0.5}.get(_reading(call, target), 0)
        cycles += rows * columns * _apart(call)
        bodies = len(Groups(size, columns).parts()) * (1 + bool(rows % size.points))
        return Cost(prod(map(upper, y.shape[:-2])) * cycles, code=bodies * size.points * size.vectors * 20)

    def rounding(self, call: Call) -> float:
        return of_sums(call)

    def pack(self, call: Call, constants: Mapping[int, Constant]) -> Mapping[int, np.ndarray]:
        *size, how, _ = call.blocks
        if how not in (PACKED, PACKED_EACH):
            return {}
        b = viewed(call.ins[1], constants[1])
        b = b.reshape(-1, *b.shape[-2:])
        b = b[:1] if how == PACKED else b
        groups = Groups(TileSize(*size), b.shape[2])
        padded = np.zeros((*b.shape[:2], groups.padded), b.dtype)
        padded[:, :, : b.shape[2]] = b
        tiles = [
            matrix[:, first : first + vectors * groups.size.lanes].reshape(-1)
            for matrix in padded
            for begin, end, vectors, _ in groups.parts()
            for first in range(begin, end, vectors * groups.size.lanes)
        ]
        return {1: np.concatenate(tiles)}

    def packing(self, call: Call) -> Mapping[int, str]:
        lanes, _, vectors, *_ = call.blocks
        return {1: f"gemm columns in {vectors}x{lanes}"}

    def column_tiles(self, call: Call) -> Mapping[int, Sequence[ColumnTiles]]:
        *size, how, _ = call.blocks
        if how != PACKED:
            return {}
        depth, columns = map(static, call.ins[1].shape[-2:])
        tiles = TileSize(*size)
        return {1: column_tiles(Groups(tiles, columns).parts(), tiles.lanes, depth)}

    def label(self, call: Call) -> str:
        a, b = call.ins[:2]
        sizes = "x".join(map(size_name, (a.shape[-2], a.shape[-1], b.shape[-1])))
        return "_".join(["gemm", *map(size_name, call.outs[0].shape[:-2]), sizes])

    def headers(self, call: Call) -> frozenset[str]:
        tiles = {"mcc_vec_transpose_bits.h"} if call.blocks[-2] == TRANSPOSED else set()
        return vector_headers(call, computed_in(call)) | tiles

    def units(self, call: Call) -> Sequence[int]:
        *size, _, cut = call.blocks
        return _units(call, TileSize(*size), cut)

    def context(self, call: Call) -> Mapping[str, Any]:
        return _Layout(call, self.parameter_names(call)[1]).context()


class _Layout:
    """Loops and C of indices for one call. Counters: n0.. batches, i row, j first column of a tile, k along the sum."""

    def __init__(self, call: Call, names: list[str]) -> None:
        self.kind, self.names, self.dtype = call.of(Gemm), names, computed_in(call)
        self.a, self.b, self.y, self.extras = call.ins[0], call.ins[1], call.outs[0], call.ins[2:]
        *size, self.how, self.cut = call.blocks
        self.size = TileSize(*size)
        self.rows = self.y.shape[-2]
        self.columns, self.depth = static(self.y.shape[-1]), static(self.a.shape[-1])
        self.longest_run = longest_run(self.depth, self.dtype, self.kind.rounding)
        if self.how in (PACKED, PACKED_EACH):
            each = 0 if self.how == PACKED else self.depth * Groups(self.size, self.columns).padded
            batch = dense_strides(self.b.shape[:-2])
            self.b = replace(self.b, strides=(*(stride * each for stride in batch), 0, 0))
        self.views = [self.y, self.a, self.b, *self.extras]
        self.batches = nest(self.y.shape[:-2], self.views, prefix="n")

    @property
    def rows_first(self) -> bool:
        """Is the second operand held by the nearest cache, but not the result? Its rows are finished one after the
        other then; elsewhere columns of tiles are, for which that operand is read once."""
        held = self.depth * self.columns * 4 <= HELD and self.how not in AT_RUN_TIME and self.cut != BY_COLUMNS
        return held and upper(self.rows) * self.columns * 4 >= FAR

    def batch(self, view: View) -> str:
        return self.batches.index(next(number for number, other in enumerate(self.views) if other is view))

    def context(self) -> dict[str, Any]:
        step, column = (static(stride) for stride in self.b.strides[-2:])
        batches = [Range.over(loop.counter, loop.count) for loop in self.batches.loops]
        if self.cut == BY_BATCHES:
            batches[0] = replace(batches[0], begin="begin", end="end")
        groups = Groups(self.size, self.columns)
        headers = groups.headers("j", Units() if self.cut == BY_COLUMNS else None)
        return {
            "batches": batches,
            "scope": [f"{self.dtype.storage_c} *panel", *(loop.counter for loop in self.batches.loops)],
            "groups": [self.group(header, *part) for header, part in zip(headers, groups.parts(), strict=True)],
            "turned": self.how in AT_RUN_TIME,
            "side": _side(self.b) if self.how == TRANSPOSED else 0,
            "bits": self.b.buffer.dtype.bits,
            "rows_first": self.rows_first,
            "number": self.dtype.storage_c,
            "zero": "0.0f" if self.dtype is f32 else "0u",
            "depth": self.depth,
            "b_at": index_c([1, column, column], [self.batch(self.b), "j", "lane"]),
            "b_steps": (step, column),
        }

    def group(self, header: str, begin: int, end: int, vectors: int, last: int) -> Group:
        step = vectors * self.size.lanes
        units = Units() if self.cut == BY_ROWS else None
        parts = [self.part(*run, vectors, last, units) for run in _row_runs(self.rows, self.size)]
        return Columns(header, tuple(parts), step, step - self.size.lanes + last)

    def part(self, first: Dim, stop: Dim, count: int, vectors: int, last: int, units: Units | None) -> Part:
        lanes = self.size.lanes
        row, header = dim_c(first), "{"
        if stop - first != count:
            row, header = "i", Range("i", upper(stop), dim_c(first), dim_c(stop), step=count).header
        if units is not None:
            row, header = "i", units.loop("i", static(first), count, static(stop - first) // count, count)

        def reference(view: View, name: str) -> Reference:
            down, across = (static(stride) for stride in view.strides[-2:])
            index = index_c([1, down, across], [self.batch(view), row, "j"])
            return Reference(name, index, down if count > 1 else 0, across, stored=view.buffer.dtype)

        extras = [reference(view, name) for view, name in zip(self.extras, self.names[2:], strict=True)]
        y = reference(self.y, "y")
        of = (lanes, count, vectors, last)
        down, along = (static(stride) for stride in self.a.strides[-2:])
        k = "k" if self.depth > 1 else "0"
        a_at = index_c([1, down, along], [self.batch(self.a), row, k])
        if self.how in (PACKED, PACKED_EACH):
            b_at = index_c([1, self.depth, vectors * lanes], [self.batch(self.b), "j", k])
        elif self.how in AT_RUN_TIME:
            b_at = index_c([vectors * lanes], [k])
        else:
            b_at = index_c([1, 1, static(self.b.strides[-2])], [self.batch(self.b), "j", k])
        b_step = static(self.b.strides[-2]) if self.how == AS_IT_IS else vectors * lanes
        passes = []
        for run in self.runs():
            loops = (run.inputs,) if self.depth > 1 else ()
            taps = taken_together(Taps(tuple(range(count)), loops, a_at, b_at), self.size.together, b_step)
            passes.append(Pass(run.around, taps))
        long = is_long(passes, count, vectors, self.longest_run > 0 and self.dtype is f32)
        epilogue = epilogue_statements(self.kind.epilogue, *of, y, extras, self.dtype, sums=True, long=long)
        w_last = last if self.how == AS_IT_IS and last < lanes else 0
        ahead = fetched_ahead(vectors * lanes * self.depth, self.columns * self.depth) if self.rows != 1 else 0
        stored = self.b.buffer.dtype
        tile = Tile(lanes, count, vectors, down, tuple(passes), epilogue, w_last, ahead, stored)
        return Part(header, replace(tile, dtype=self.dtype, totals=self.longest_run > 0))

    def runs(self) -> tuple[Run, ...]:
        if self.longest_run:
            return runs("k", self.depth, self.longest_run, self.size.together)
        return (Run((), Range("k", self.depth)),)


def _apart(call: Call) -> int:
    """How many of the results and operands of the epilogue have columns that do not lie side by side."""
    return sum(static(view.strides[-1]) not in (0, 1) for view in (*call.outs, *call.ins[2:]))


def _sizes_refusal(call: Call) -> str:
    """Rows and batches may be known only at run time, nothing else."""
    inner = [*call.outs[0].strides[-2:], call.outs[0].shape[-1], call.ins[0].shape[-1]]
    inner += [stride for view in call.ins for stride in view.strides[-2:]]
    symbolic = [dim for dim in inner if not isinstance(dim, int)]
    return f"the size {symbolic[0]} is known only at run time" if symbolic else ""


def _side(view: View) -> int:
    """Of the tiles that are transposed in registers."""
    return 128 // view.buffer.dtype.bits


def _reading(call: Call, target: Target) -> int:
    b = call.ins[1]
    alone = all(stride == 0 or dim == 1 for dim, stride in zip(b.shape[:-2], b.strides[:-2], strict=True))
    each = all(stride != 0 or dim == 1 for dim, stride in zip(b.shape[:-2], b.strides[:-2], strict=True))
    if b.buffer.constant is not None and (alone or each):
        return PACKED if alone else PACKED_EACH
    if b.strides[-1] == 1:
        return AS_IT_IS
    tiles = has_traffic(target) and "rvv" not in target.isas and b.strides[-2] == 1 and static(b.shape[-2]) >= _side(b)
    return TRANSPOSED if tiles else TURNED


def _best(call: Call, target: Target) -> tuple[TileSize, int]:
    """The size of tiles, and how the work is cut."""
    a, y = call.ins[0], call.outs[0]
    rows, columns, depth = upper(y.shape[-2]), static(y.shape[-1]), static(a.shape[-1])
    shape = (rows, columns, depth, abs(static(a.strides[-2])) * 4, target)
    run, dtype = depth if a.strides[-1] == 1 else 1, computed_in(call)
    size = best_tile(*shape, run=run, dtype=dtype)
    if call.workers == 1:
        return size, NOT_CUT

    def effort(chosen: tuple[TileSize, int]) -> float:
        size, cut = chosen
        units = _units(call, size, cut)
        unfair = slowest(units, call.workers) if units else call.workers
        return row_cycles(size, rows, columns, depth, target) * unfair

    narrower = best_tile(*shape, call.workers, run, dtype)
    return min(((size, BY_BATCHES), (narrower, BY_COLUMNS), (size, BY_ROWS)), key=effort)


def _units(call: Call, size: TileSize, cut: int) -> tuple[int, ...]:
    """What workers share: matrices, groups of columns, or tiles of rows."""
    if cut == BY_BATCHES:
        batches = nest([static(dim) for dim in call.outs[0].shape[:-2]], [*call.outs, *call.ins]).loops
        return (1,) * batches[0].extent if batches else ()
    if cut == BY_COLUMNS:
        units = Units()
        Groups(size, static(call.outs[0].shape[-1])).headers("j", units)
        return tuple(units.sizes)
    runs = _row_runs(call.outs[0].shape[-2], size)
    return tuple(count for first, stop, count in runs for _ in range(static(first), static(stop), count))


def _row_runs(rows: Dim, size: TileSize) -> list[tuple[Dim, Dim, int]]:
    """Runs of equal tiles: first row, end, and rows of each tile."""
    whole = rows // size.points * size.points
    left = rows - whole  # of a number that is not known, one row at a time
    runs: tuple[tuple[Dim, Dim, int], ...] = (
        (0, whole, size.points),
        (whole, rows, left if isinstance(left, int) else 1),
    )
    return [run for run in runs if run[0] != run[1]]


def gemm(rows: int, depth: int, columns: int) -> Case:
    return _with_epilogue(rows, depth, columns, constant=True)


def gemm_direct(rows: int, depth: int, columns: int) -> Case:
    return _with_epilogue(rows, depth, columns, constant=False)


def _with_epilogue(m: int, k: int, n: int, constant: bool) -> Case:
    return _case(f"{m}_{k}_{n}", Gemm(f32, RELU_OF_SUM), (m, k), (k, n), extras=1, constant=constant)


def _case(name: str, kind: Gemm, a: Shape, b: Shape, **more: Any) -> Case:
    return Case.of_one_type(name, kind, (a, b), (*a[:-1], b[-1]), **more)
