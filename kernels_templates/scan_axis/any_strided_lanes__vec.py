"""scan_axis of any element types in loops over lanes, which compilers make vectors of: lanes lie across the axis, along
another one in which operand and result lie side by side. Invariant: each total is added up in the order of the axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import f32, i8, i32, i64
from mccompile.base.tensor import TensorType
from mccompile.codegen.lanes import LANES, LEAST, each_lane, lane_pieces, lane_work, lanes_refusal, without_branches
from mccompile.codegen.loops import Loop, Nest, beside, index_c
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import AROUND, traffic
from mccompile.codegen.vector.vector_loops import Chunk, chunks
from mccompile.expr.code import Code
from mccompile.expr.ir import Expr, apply, operand
from mccompile.expr.scalar_c import literal_c, load_c, store_c, to_statements
from mccompile.kernels.api import (
    Call,
    Case,
    Cost,
    Kernel,
    Needs,
    No,
    SizedCase,
    Target,
    elementwise_alias,
    static_views,
)
from mccompile.kernels.work import Units
from mccompile.kinds.scan_axis import ScanAxis


class Lanes(Kernel):
    kind = ScanAxis

    def cases(self) -> Sequence[Case]:
        planes, wrapped = TensorType(f32, (2, 5, 83)), TensorType(i32, (7, 40))
        bytes_, wide = TensorType(i8, (3, 4, 71)), TensorType(i64, (9, 21))
        return [
            Case("sums", ScanAxis(1, "add", f32), (planes,), (planes,)),
            Case("of_rows", ScanAxis(0, "mul", f32), (planes,), (planes,)),
            Case("exclusive", ScanAxis(1, "add", f32, True), (planes,), (planes,)),
            Case("in_columns", ScanAxis(2, "add", f32), (planes,), (planes,), permute={0: (2, 0, 1)},
                 permute_outs={0: (2, 0, 1)}),
            Case("wrapped", ScanAxis(0, "mul", i32, True), (wrapped,), (wrapped,), ranges={0: (-90000, 90000)}),
            Case("bytes", ScanAxis(1, "add", i8), (bytes_,), (bytes_,)),
            Case("wide", ScanAxis(0, "add", i64), (wide,), (wide,)),
        ]  # fmt: skip

    def sized_cases(self) -> Sequence[SizedCase]:
        return [sums_of_columns]

    def match(self, call: Call, target: Target) -> No | Needs:
        views = [view.buffer.dtype for view in (*call.outs, *call.ins)]
        reason = lanes_refusal(target, [_joined(call)], views) or static_views(call)
        if reason:
            return No(reason)
        if _row(call) is None:
            return No("elements across the axis are not contiguous, or are too few")
        return Needs(alias={(0, 0): 0} if elementwise_alias(call, 0) else {}, blocks=(LANES,))

    def cost(self, call: Call, target: Target) -> Cost:
        count, machine = static(call.outs[0].type.count), target.machine
        row, dtype = _loops(call)[1], call.of(ScanAxis).accumulator
        views = (*call.outs, *call.ins)
        work = lane_work([_joined(call)], [dtype, dtype, *(view.buffer.dtype for view in views)], target)
        single = row.extent % (LEAST // 2) * 4 / machine.issue
        cycles = count * work + count / row.extent * (single + 2 * AROUND / machine.issue)
        return Cost(max(cycles, traffic(views, target)), code=300)

    def units(self, call: Call) -> Sequence[int]:
        around, row, _ = _loops(call)
        return (1,) * (around[0].extent if around else -(-row.extent // LANES))

    def context(self, call: Call) -> Mapping[str, Any]:
        around, row, loops = _loops(call)
        outer = [Range.over(loop.counter, loop.count) for loop in around]
        units = Units() if call.workers > 1 and not outer else None
        if call.workers > 1 and outer:
            outer[0] = replace(outer[0], begin="begin", end="end")
        found = [
            {"header": chunk.header, "lines": self.lines(call, loops, row, chunk)}
            for chunk in chunks(row.counter, row.extent, LANES, units)
        ]
        return {"loops": outer, "chunks": found}

    def lines(self, call: Call, loops: Nest, row: Loop, chunk: Chunk) -> list[str]:
        """Totals begin; then at every place along the axis each takes an element."""
        kind, x, out = call.of(ScanAxis), call.ins[0], call.outs[0]
        (y,), (name,) = self.parameter_names(call)
        dtype = kind.accumulator
        identity, step = literal_c(0 if kind.combine == "add" else 1, dtype), []
        for begin, many in lane_pieces(chunk.lanes):
            lane = f"{begin} + lane" if begin else "lane"
            at = Code(f"{row.counter} + {lane}", loose=True)
            counters = [*(at if loop == row else loop.counter for loop in loops.loops), "r"]
            source = index_c([*loops.strides[1], x.strides[kind.axis]], counters)
            place = index_c([*loops.strides[0], out.strides[kind.axis]], counters)
            made, value = to_statements(_joined(call), [f"total[{lane}]", "value"])
            ends = [store_c(out.buffer.dtype, y, place, f"total[{lane}]"), *made, f"total[{lane}] = {value};"]
            if not kind.exclusive:
                ends = [*ends[1:], ends[0]]
            load = f"const {dtype.compute_c} value = {load_c(x.buffer.dtype, name, source)};"
            step += each_lane(many, [load, *ends])
        return [
            f"{dtype.compute_c} total[{chunk.lanes}];",
            *each_lane(chunk.lanes, [f"total[lane] = {identity};"]),
            f"for (mcc_index r = 0; r < {static(x.shape[kind.axis])}; ++r) {{",
            *step,
            "}",
        ]

    def label(self, call: Call) -> str:
        return f"scan_{call.of(ScanAxis).combine}"


def _joined(call: Call) -> Expr:
    kind = call.of(ScanAxis)
    return without_branches(apply(kind.combine, operand(0, kind.accumulator), operand(1, kind.accumulator)))


def _row(call: Call) -> Loop | None:
    """The loop that lanes lie along."""
    loops = beside(call.of(ScanAxis).axis, call.outs[0], call.ins[0])
    found = (loop for loop, *steps in zip(loops.loops, *loops.strides, strict=True) if steps == [1, 1])
    return next((loop for loop in found if loop.extent >= LEAST // 2), None)


def _loops(call: Call) -> tuple[list[Loop], Loop, Nest]:
    """Loops around the row, the row, and all of them over result and operand."""
    loops, row = beside(call.of(ScanAxis).axis, call.outs[0], call.ins[0]), _row(call)
    assert row is not None
    return [loop for loop in loops.loops if loop != row], row, loops


def sums_of_columns(first: int, second: int, last: int) -> Case:
    """Shorter rows are not served."""
    t = TensorType(f32, (first, second, last + LEAST // 2 - 1))
    return Case(f"{first}_{second}_{last}", ScanAxis(1, "add", f32), (t,), (t,))
