"""map of any element types in loops over lanes, which compilers make vectors of, along the axis in which the result
lies side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64
from mccompile.base.tensor import TensorType
from mccompile.codegen.lanes import (
    LANES,
    LEAST,
    LONG_FLOATS,
    as_bits,
    bits_of,
    cuts,
    each_lane,
    lane_pieces,
    lane_work,
    lanes_refusal,
    without_branches,
)
from mccompile.codegen.loops import Nest, index_c, memory_order, nest
from mccompile.codegen.map_label import map_label
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import AROUND, innermost, traffic
from mccompile.codegen.vector.vector_loops import Chunk, chunks
from mccompile.expr.code import Code
from mccompile.expr.ir import Apply, Expr, Index, Operand, apply, cast, index, literal, operand, walk
from mccompile.expr.scalar_c import load_c, store_c, to_statements
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
from mccompile.kinds.map import Map

PLACE = "place"  # where the lanes of a loop begin


class Lanes(Kernel):
    kind = Map

    def cases(self) -> Sequence[Case]:
        found = []
        for dtype in (i8, u8, i16, u16, i32, u32, i64, u64):
            x, y = operand(0, dtype), operand(1, dtype)
            names = ["add", "sub", "mul", "max", "min", "bit_xor"]
            names += ["div", "mod", "fmod"] if dtype is not u64 else []
            found += [_case(f"{name}_{dtype}", apply(name, x, y), 107) for name in names]
            found.append(_case(f"less_{dtype}", apply("less", x, y), 35))
            third = apply("sub", apply("mod", x, literal(3, dtype)), apply("sign", y))
            found += [_case(f"third_{dtype}", third, 33)] if dtype is not u64 else []
        x, y, masked = operand(0, f32), operand(1, f32), operand(2, bool_)
        first = apply("equal", operand(0, i64), index(1))
        wide = apply("mul", cast(operand(0, i8), i32), cast(operand(1, i16), i32))
        rounded = apply("round_even", apply("mul", cast(operand(0, u8), f32), operand(1, f32)))
        clipped = cast(apply("max", apply("min", rounded, literal(255, f32)), literal(0, f32)), u8)
        either = apply("or", apply("less", x, y), apply("not", masked))
        doubled = apply("sub", operand(0, f64), apply("abs", operand(1, f64)))
        turned = _case("turned", apply("add", x, y), 40)
        return [
            *found,
            _case("where", apply("select", masked, operand(0, i64), operand(1, i64)), 71),
            _case("either", either, 70),
            _case("where_f16", apply("select", operand(1, bool_), operand(0, f16), literal(-0.5, f16)), 71),
            _case("hardmax_bf16", cast(apply("select", first, literal(1, f32), literal(0, f32)), bf16), 40),
            _case("doubles", doubled, 21),
            _case("widened", wide, 43),
            _case("requantized", clipped, 83),
            *(_fixed(halves) for halves in (0, 64)),
            _case("positions", cast(apply("add", apply("mul", index(0), literal(7, i64)), index(1)), i32), 24),
            replace(_case("rows", apply("mul", operand(0, i32), operand(1, i32)), 30), repeated={1: (1,)}),
            replace(_case("columns", apply("div", operand(0, i16), operand(1, i16)), 30), repeated={1: (0,)}),
            replace(turned, permute={1: (1, 0)}),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [divided]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = lanes_refusal(target, [_expression(call)], _dtypes(call)) or static_views(call)
        if reason:
            return No(reason)
        loops = _nest(call)
        if not loops.loops or loops.loops[-1].extent < LEAST // 2 or loops.strides[0][-1] != 1:
            return No("rows of the result are too short, or not contiguous")
        order = memory_order(call.outs[0])
        alias = {(0, i): 0 for i in range(len(call.ins)) if elementwise_alias(call, i, order=order)}
        return Needs(alias=alias, blocks=(LANES,))

    def cost(self, call: Call, target: Target) -> Cost:
        loops, machine = _nest(call), target.machine
        row, views = loops.loops[-1].extent, (*call.outs, *call.ins)
        apart = sum(steps[-1] not in (0, 1) for steps in loops.strides)
        vectors = lane_work([_expression(call)], _dtypes(call), target)
        single = row % (LEAST // 2) * (len(views) + 2) / machine.issue
        cycles = row * (vectors + 2 * apart / machine.stores) + single + 2 * AROUND / machine.issue
        count = static(call.outs[0].type.count)
        return Cost(max(count // row * cycles, traffic(views, target, innermost(call))), code=400)

    def units(self, call: Call) -> Sequence[int]:
        loops = _nest(call).loops
        return (1,) * (loops[0].extent if len(loops) > 1 else -(-loops[0].extent // LANES))

    def context(self, call: Call) -> Mapping[str, Any]:
        loops = _nest(call)
        row = loops.loops[-1]
        outer = [Range.over(loop.counter, loop.count) for loop in loops.loops[:-1]]
        units = Units() if call.workers > 1 and not outer else None
        if call.workers > 1 and outer:
            outer[0] = replace(outer[0], begin="begin", end="end")
        found = [
            {"header": chunk.header, "lines": self.lines(call, loops, chunk)}
            for chunk in chunks(PLACE, row.extent, LANES, units)
        ]
        return {"loops": outer, "chunks": found}

    def lines(self, call: Call, loops: Nest, chunk: Chunk) -> list[str]:
        (y,), names = self.parameter_names(call)
        expr, (out, *dtypes) = without_branches(_expression(call)), _dtypes(call)
        counters: list[str | Code] = [loop.counter for loop in loops.loops[:-1]]
        order, repeated, found = memory_order(call.outs[0]), [], []
        for number, (name, dtype) in enumerate(zip(names, dtypes, strict=True), 1):
            if not loops.strides[number][-1]:
                repeated.append(_loaded(name, dtype, loops.index(number)))
        for begin, many in lane_pieces(chunk.lanes):
            at = Code(f"{PLACE} + {f'{begin} + ' if begin else ''}lane", loose=True)
            places = [*counters, at]
            loads = [
                _loaded(name, dtype, index_c(loops.strides[number], places))
                for number, (name, dtype) in enumerate(zip(names, dtypes, strict=True), 1)
                if loops.strides[number][-1]
            ]
            axes = [at.operand if axis == loops.loops[-1].counter else axis for axis in loops.axes]
            axes = [axes[order.index(axis)] for axis in range(len(order))]
            made, value = to_statements(expr, [f"of_{name}" for name in names], axes)
            store = store_c(out, y, index_c(loops.strides[0], places), value)
            found += each_lane(many, [*loads, *made, store], cuts(expr))
        return [*repeated, *found]

    def label(self, call: Call) -> str:
        return map_label(call)


def _expression(call: Call) -> Expr:
    return as_bits(call.kind.expressions()[0])


def _dtypes(call: Call) -> list[DType]:
    """Of the results and operands, as lanes have them."""
    return [bits_of(view.buffer.dtype) for view in (*call.outs, *call.ins)]


def _nest(call: Call) -> Nest:
    """Loops in the order in which the result lies in memory."""
    expr, order, views = call.kind.expressions()[0], memory_order(call.outs[0]), [*call.outs, *call.ins]
    indexed = any(isinstance(node, Index) for node in walk(expr))
    return nest([call.outs[0].shape[axis] for axis in order], [v.permuted(order) for v in views], keep_axes=indexed)


def _loaded(name: str, dtype: DType, index: str) -> str:
    return f"const {dtype.compute_c} of_{name} = {load_c(dtype, name, index)};"


def divided(first: int, second: int, last: int) -> Case:
    """An operand is the same along the middle axis. Shorter rows are not served."""
    kind, shape = Map(apply("div", operand(0, u8), operand(1, u8))), (first, second, last + LEAST // 2 - 1)
    return replace(Case.of_one_type(f"{first}_{second}_{last}", kind, (shape, shape), shape, u8), repeated={1: (1,)})


def _fixed(halves: int) -> Case:
    """A difference of 16 bits, rounded in 64, with or without true halves."""
    fine = apply("fixed_product", apply("mul", cast(operand(0, i16), i32), literal(256, i32)), operand(1, i64))
    total = apply("fixed_round", apply("add", fine, operand(2, i64)), operand(3, u8))
    case = _case(f"fixed_{halves}", cast(apply("max", total, literal(-32768, i32)), i32), 75)
    ranges = {1: (1 << 40, 1 << 42), 2: (-(1 << 34), 1 << 34), 3: (halves + 19, halves + 40)}
    return replace(case, ranges={**case.ranges, **ranges})


def _case(name: str, expr: Expr, count: int) -> Case:
    """Of three rows. The first operand has all numbers of its type, which meet 0 and -1 in the second one."""
    dtypes = {node.index: node.dtype for node in walk(expr) if isinstance(node, Operand)}
    ins = tuple(TensorType(dtype, (3, count)) for _, dtype in sorted(dtypes.items()))
    ends = [(t.dtype.low, min(t.dtype.high, i64.high)) if t.dtype.is_integer else (-300, 300) for t in ins[:1]]
    ranges = dict(enumerate([*ends, (-3, 3)]))
    divides = any(isinstance(node, Apply) and node.function in ("div", "mod", "fmod") for node in walk(expr))
    option = LONG_FLOATS if divides and expr.dtype in (u32, i64) else ""
    return Case(name, Map(expr), ins, (TensorType(expr.dtype, (3, count)),), ranges=ranges, option=option)
