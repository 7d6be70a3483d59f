"""map on int8 in SIMD along the axis in which the result is contiguous: integers that stay integers or become floats,
or floats that are rounded and cast. Operands are contiguous along it too, or have one element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f32, i8, i32, i64, u8
from mccompile.base.tensor import TensorType
from mccompile.codegen.int8.dot_tiles import dot_headers, dot_lanes, dot_refusal
from mccompile.codegen.loops import Nest, memory_order
from mccompile.codegen.map_label import map_label
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import in_vectors
from mccompile.codegen.vector.vector_loops import Chunk, chunks, elementwise_units, vector_nest
from mccompile.expr.integer_vector_c import integer_refusal, to_integer_statements
from mccompile.expr.ir import Expr, apply, cast, literal, operand
from mccompile.expr.vector_c import uses_math
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, Target, elementwise_alias, static_views
from mccompile.kernels.work import Units
from mccompile.kinds.map import Map


class ByteLoops(Kernel):
    kind = Map

    def cases(self) -> Sequence[Case]:
        cases = [
            _case(f"quantize_{dtype}_{n}", _quantized(dtype), (f32, f32, dtype), dtype, n)
            for dtype in (i8, u8)
            for n in (4, 7, 16, 33, 100)
        ]
        total: Expr = operand(2, i32)
        for i, factor in enumerate((1 << 30, 1 << 29)):
            raised = apply("mul", cast(operand(i, u8), i32), literal(1 << 9, i32))
            total = apply("high_sum", total, raised, literal(factor, i32))
        added = cast(apply("saturate_u8", apply("shift_right", total, literal(7, i32))), u8)
        clipped = cast(apply("min", apply("max", cast(operand(0, i8), i32), literal(-20, i32)), literal(30, i32)), i8)
        less = apply("sub", cast(operand(0, u8), i32), cast(operand(2, u8), i32))
        dequantized = apply("mul", cast(less, f32), operand(1, f32))
        quotient = apply("div", dequantized, apply("add", cast(operand(3, i8), f32), literal(0.5, f32)))
        divided = cast(_clipped(quotient, u8), u8)
        fine = cast(_quantized(i8), i32)
        coarse = cast(cast(apply("mul", operand(3, f32), operand(1, f32)), u8), i32)
        total = apply("mul", cast(apply("sub", apply("mul", fine, fine), coarse), f32), operand(1, f32))
        return [
            *cases,
            *(_case(f"divide_{n}", divided, (u8, f32, u8, i8), u8, n, moving=(0, 3)) for n in (5, 16, 35)),
            *(_case(f"dequantize_{n}", dequantized, (u8, f32, u8), f32, n) for n in (5, 16, 35)),
            *(_case(f"add_{n}", added, (u8, u8, i32), u8, n, whole=2) for n in (5, 16, 35)),
            *(_case(f"requantize_{n}", total, (f32, f32, i8, f32), f32, n, moving=(0, 3)) for n in (5, 16, 35)),
            _case("clip", clipped, (i8,), i8, 21, whole=1),
        ]

    def match(self, call: Call, target: Target) -> No | Needs:
        (expr,) = call.kind.expressions()
        reason = dot_refusal(target) or static_views(call)
        if reason:
            return No(reason)
        reason = integer_refusal(expr)
        if all(view.buffer.dtype is f32 for view in (*call.ins, *call.outs)) or uses_math(expr):
            return No("only for bytes, and not for functions of floats")
        loops = vector_nest([*call.outs, *call.ins])
        if reason or isinstance(loops, str):
            return No(reason or str(loops))
        for view, strides in zip(call.ins, loops.strides[1:], strict=True):
            if strides[-1] and view.buffer.dtype not in (i8, u8, f32):
                return No(f"an operand of {view.buffer.dtype} changes from element to element")
        order = memory_order(call.outs[0])
        alias = {(0, i): 0 for i in range(len(call.ins)) if elementwise_alias(call, i, order=order)}
        return Needs(alias=alias, blocks=(dot_lanes(target),))

    def cost(self, call: Call, target: Target) -> Cost:
        loops, lanes = vector_nest([*call.outs, *call.ins]), call.blocks[0]
        assert isinstance(loops, Nest)
        row = loops.loops[-1].extent
        rows = static(call.outs[0].type.count) // row
        return Cost(in_vectors(call, rows, -(-row // lanes), lanes, target), code=300)

    def headers(self, call: Call) -> frozenset[str]:
        return dot_headers(call)

    def units(self, call: Call) -> Sequence[int]:
        return elementwise_units(call)

    def context(self, call: Call) -> Mapping[str, Any]:
        loops = vector_nest([*call.outs, *call.ins])
        assert isinstance(loops, Nest)
        row, (lanes,) = loops.loops[-1], call.blocks
        outer = [Range.over(loop.counter, loop.count) for loop in loops.loops[:-1]]
        units = Units() if call.workers > 1 and not outer else None
        if call.workers > 1 and outer:
            outer[0] = replace(outer[0], begin="begin", end="end")
        found = [
            {"header": chunk.header, "lines": self.statements(call, loops, chunk, lanes)}
            for chunk in chunks(row.counter, row.extent, lanes, units)
        ]
        return {"loops": outer, "chunks": found}

    def statements(self, call: Call, loops: Nest, chunk: Chunk, lanes: int) -> list[str]:
        (expr,), ((y,), names) = call.kind.expressions(), self.parameter_names(call)
        part, loads = chunk.lanes < lanes, []
        for number, (name, view) in enumerate(zip(names, call.ins, strict=True), 1):
            dtype, index = view.buffer.dtype, loops.index(number)
            if dtype is f32:
                loads.append(chunk.load(lanes, name, index, static(loops.strides[number][-1])))
            elif not loops.strides[number][-1]:
                loads.append(f"mcc_set_{'i64' if dtype is i64 else 'i32'}x{lanes}({name}[{index}])")
            else:
                kind = f"part_{dtype}_" if part else f"{dtype}_"
                count = f", {chunk.lanes}" if part else ""
                loads.append(f"mcc_load_{kind}i32x{lanes}({name} + {index}{count})")
        count = f", {chunk.lanes}" if part else ""
        store = f"mcc_store_{'part_' if part else ''}{{0}}({y} + {loops.index(0)}{count}, {{1}});"
        return to_integer_statements(expr, loads, lanes, store)

    def label(self, call: Call) -> str:
        return map_label(call, copy="map")


def _quantized(dtype: Any) -> Expr:
    """What QuantizeLinear is."""
    rounded = apply("round_even", apply("div", operand(0, f32), operand(1, f32)))
    total = apply("add", rounded, cast(operand(2, dtype), f32))
    return cast(_clipped(total, dtype), dtype)


def _clipped(number: Expr, dtype: DType) -> Expr:
    return apply("max", apply("min", number, literal(dtype.high, f32)), literal(dtype.low, f32))


def _case(
    name: str, expr: Expr, types: Sequence[Any], out: Any, count: int, whole: int = 1, moving: Sequence[int] = ()
) -> Case:
    """The first operands are whole, or those of `moving`, the others one number each."""
    shape = (3, count)
    ranges = {i: (-300.0, 300.0) if t is f32 else (t.low, t.high) for i, t in enumerate(types)}
    if types[0] is f32:
        ranges[1] = (0.5, 2.0)
    return Case(
        name,
        Map(expr),
        tuple(TensorType(t, shape) for t in types),
        (TensorType(out, shape),),
        ranges={**ranges, **{i: (-2000, 2000) for i, t in enumerate(types) if t is i32}},
        repeated={i: (0, 1) for i in range(len(types)) if i not in (moving or range(whole))},
    )
