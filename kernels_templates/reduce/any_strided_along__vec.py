"""reduce of integers and truth values in loops over lanes, which compilers make vectors of, along the last of the
reduced axes: in any order, as integers wrap around. Sums of bytes are dot products with ones where the target has
these (mcc_dot.h)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, bool_, i8, i16, i32, i64, u8, u32
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.int8.dot_tiles import dot_headers, dot_lanes
from mccompile.codegen.lanes import LEAST, each_lane, lane_pieces, lane_work, lanes_refusal, without_branches
from mccompile.codegen.loops import Loop, Nest, index_c
from mccompile.codegen.sums import reduced_nests
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import AROUND, traffic
from mccompile.expr.code import Code
from mccompile.expr.ir import Expr, Index, apply, cast, literal, operand, walk
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
from mccompile.kinds.reduce import Reduce

WIDEST = 64  # bytes of a vector


class Along(Kernel):
    kind = Reduce

    def cases(self) -> Sequence[Case]:
        mean = cast(apply("shift_right", operand(0, i32), literal(3, i32)), i8)
        joined = apply("add", operand(0, i32), operand(1, i32))
        apart = apply("sub", cast(operand(0, u8), i32), cast(operand(1, u8), i32))
        pictures = (2, 3, 7, 9)
        return [
            _case("sum_i8", Reduce((2, 3), "add", i32, cast(operand(0, i8), i32), mean), pictures, i8, i8),
            _case("sum_u8", Reduce((1, 3), "add", i32, cast(operand(0, u8), i32)), (2, 3, 4, 75), u8, i32),
            _case("rows_u8", Reduce((1,), "max", u8, operand(0, u8)), (3, 77), u8, u8),
            _case("least_i16", Reduce((1,), "min", i16, operand(0, i16)), (3, 131), i16, i16),
            _case("wrap", Reduce((1,), "mul", i32, operand(0, i32)), (4, 40), i32, i32),
            _case("several_axes", Reduce((0, 2), "add", i64, operand(0, i64)), (3, 4, 21), i64, i64),
            _case("every", Reduce((1,), "and", bool_, operand(0, bool_)), (5, 90), bool_, bool_),
            _case("any", Reduce((0, 2), "or", bool_, operand(0, bool_)), (3, 4, 21), bool_, bool_),
            _case("natural", Reduce((1,), "max", u32, operand(0, u32)), (2, 50), u32, u32),
            _case("epilogue", Reduce((1,), "add", i32, operand(0, i32), joined), (5, 33), i32, i32, extras=1),
            _case("two_operands", Reduce((1,), "add", i32, apart, None, 2), (3, 90), u8, i32),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [totals]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, full = call.of(Reduce), call.ins[: call.of(Reduce).operands]
        reason = lanes_refusal(target, [kind.element], [view.buffer.dtype for view in full]) or static_views(call)
        if reason:
            return No(reason)
        if kind.accumulator.is_float:
            return No("only for integers and truth values")
        if any(isinstance(node, Index) for expr in kind.expressions() for node in walk(expr)):
            return No("it needs positions, which are not computed in vectors")
        loops = reduced_nests(call)[1]
        if 0 in call.ins[0].shape or not loops.loops or loops.loops[-1].extent < LEAST // 2:
            return No("rows of the operand are too short")
        if any(steps[-1] not in (0, 1) for steps in loops.strides):
            return No("combined elements are not contiguous")
        extras = range(kind.operands, len(call.ins))
        dots = dot_lanes(target) if _adds_bytes(kind) and loops.strides[0][-1] == 1 else 0
        blocks = (dots,) if 0 < 4 * dots <= loops.loops[-1].extent else ()
        return Needs(alias={(0, i): 0 for i in extras if elementwise_alias(call, i)}, blocks=blocks)

    def cost(self, call: Call, target: Target) -> Cost:
        kind, machine, loops = call.of(Reduce), target.machine, reduced_nests(call)[1]
        row, count = loops.loops[-1].extent, static(call.ins[0].type.count)
        dtypes = [view.buffer.dtype for view in call.ins[: kind.operands]]
        vectors = lane_work([_combined(kind)], dtypes, target) / (4 if call.blocks else 1)
        cycles = row * vectors + 2 * AROUND / machine.issue + row % (LEAST // 2) * 2 / machine.issue
        ends = static(call.outs[0].type.count) * 8 * machine.element
        return Cost(max(ends + count / row * cycles, traffic((*call.outs, *call.ins), target)), code=300)

    def headers(self, call: Call) -> frozenset[str]:
        return dot_headers(call) if call.blocks else frozenset()

    def units(self, call: Call) -> Sequence[int]:
        loops = reduced_nests(call)[0].loops
        return (1,) * loops[0].extent if loops else ()

    def label(self, call: Call) -> str:
        kind = call.of(Reduce)
        return f"reduce_{kind.combine}_{static(call.ins[0].type.count) // static(call.outs[0].type.count)}"

    def context(self, call: Call) -> Mapping[str, Any]:
        kind, (outer, inner), ((y,), names) = call.of(Reduce), reduced_nests(call), self.parameter_names(call)
        around = _ranges(outer.loops)
        if call.workers > 1 and around:
            around[0] = replace(around[0], begin="begin", end="end")
        views = [*call.outs, *call.ins]
        placed = [
            load_c(view.buffer.dtype, name, outer.index(number))
            for number, (view, name) in enumerate(zip(views, [y, *names], strict=True))
        ]
        made, result = to_statements(
            kind.epilogue or operand(0, kind.accumulator), ["total", *placed[1 + kind.operands :]], local="v"
        )
        return {
            "outer": around,
            "type": kind.accumulator.compute_c,
            "identity": literal_c(kind.identity(), kind.accumulator),
            "inner": _ranges(inner.loops[:-1]),
            "lines": self.row(call, outer, inner),
            "made": made,
            "store": store_c(call.outs[0].buffer.dtype, y, outer.index(0), result),
        }

    def row(self, call: Call, outer: Nest, inner: Nest) -> list[str]:
        """Elements that lie side by side."""
        kind, names, lines = call.of(Reduce), self.parameter_names(call)[1], list[str]()
        counters: list[str | Code] = [loop.counter for loop in (*outer.loops, *inner.loops[:-1])]
        if call.blocks:
            first = index_c([*outer.strides[1], *inner.strides[0][:-1]], counters)
            of = f"mcc_sum_{call.ins[0].buffer.dtype}_i32x{call.blocks[0]}"
            joined = apply("add", operand(0, i32), operand(1, i32))
            made, value = to_statements(joined, ["total", f"{of}({names[0]} + {first}, {inner.loops[-1].extent})"])
            return [*made, f"total = {value};"]
        full = list(enumerate(zip(names, call.ins[: kind.operands], strict=False), 1))
        for begin, many in _pieces(inner.loops[-1].extent, call.ins[0].buffer.dtype):
            at = Code(index_c([1], ["lane"], begin), loose=begin > 0)
            places = [*counters, at]
            loads = [
                load_c(view.buffer.dtype, name, index_c([*outer.strides[number], *inner.strides[number - 1]], places))
                for number, (name, view) in full
            ]
            made, value = to_statements(_combined(kind), [*loads, "total"], local="t")
            lines += each_lane(many, [*made, f"total = {value};"])
        return lines


def _ranges(loops: Sequence[Loop]) -> list[Range]:
    return [Range.over(loop.counter, loop.count) for loop in loops]


def _combined(kind: Reduce) -> Expr:
    return without_branches(apply(kind.combine, operand(kind.operands, kind.accumulator), kind.element))


def _adds_bytes(kind: Reduce) -> bool:
    return kind.combine == "add" and kind.element in [cast(operand(0, dtype), i32) for dtype in (i8, u8)]


def _pieces(count: int, dtype: DType) -> Iterator[tuple[int, int]]:
    """Compilers make vectors of loops without a remainder."""
    step = 8 * WIDEST // dtype.bits
    whole = count // step * step
    if whole:
        yield 0, whole
    for begin, many in lane_pieces(count - whole):
        yield whole + begin, many


def totals(first: int, second: int, last: int) -> Case:
    """Shorter rows are not served."""
    kind = Reduce((2,), "add", i32, cast(operand(0, i8), i32))
    return _case(f"{first}_{second}_{last}", kind, (first, second, last + LEAST // 2 - 1), i8, i32)


def _case(name: str, kind: Reduce, x: Shape, dtype: DType, out: DType, extras: int = 0) -> Case:
    y, low = TensorType(out, kind.out_shape(x)), max(dtype.low, -90000)
    ins = (*[TensorType(dtype, x)] * kind.operands, *[y] * extras)
    return Case(name, kind, ins, (y,), ranges=dict.fromkeys(range(kind.operands), (low, min(dtype.high, 90000))))
