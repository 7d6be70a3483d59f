"""map of any element types where operands lie across the result: square tiles of these are transposed in registers into
a block on the stack, and the expression goes along its rows, in vectors of floats or in loops over lanes.

The last block of a row or column begins earlier rather than being narrow, so some elements are computed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import SHORT, DType, bool_, f16, f32, f64, i8, i16, i32, i64, u8
from mccompile.base.records import dataclass
from mccompile.base.tensor import TensorType
from mccompile.codegen.across import Across
from mccompile.codegen.lanes import cuts, each_lane, lane_work, lanes_refusal, without_branches
from mccompile.codegen.loops import index_c
from mccompile.codegen.map_label import map_label
from mccompile.codegen.tiles import Range
from mccompile.codegen.traffic import AROUND, each_vector, has_traffic, innermost, one_by_one, traffic
from mccompile.codegen.vector.vector_loops import Chunk, ordered_nest
from mccompile.codegen.vector.vector_tiles import best_lanes, vector_headers, vector_refusal
from mccompile.expr.code import Code
from mccompile.expr.ir import Expr, Index, Operand, apply, cast, operand, walk
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.expr.vector_c import NARROW, ROUNDED, refusal, to_vector_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views
from mccompile.kinds.map import Map

SIDES = (16, 8, 4)  # elements along either axis of a block: whole tiles of each operand that is turned
REGISTER = 128  # bits of a row of a tile
KNOWN = (*NARROW, *SHORT, *ROUNDED, bool_)  # types of operands of vectors besides f32


class TurnedOperands(Kernel):
    kind = Map
    branches = ""

    def cases(self) -> Sequence[Case]:
        mask, turned = operand(0, bool_), {1: (1, 0)}
        cases = []
        for dtype in (u8, i16, f16, f32, i32, i64, f64):
            x, y = operand(0, dtype), operand(1, dtype)
            chosen = apply("select", mask, y, operand(2, dtype))
            cases.append(_case(f"where_{dtype}", chosen, (19, 37), turned))
            cases.append(_case(f"less_{dtype}", apply("less", x, y), (17, 33), turned))
        for dtype in (f16, f32, i32, i64, f64):
            cases.append(_case(f"short_{dtype}", apply("sub", operand(0, dtype), operand(1, dtype)), (10, 20), turned))
        cases.append(_case("where_i64_short", apply("select", mask, operand(1, i64), operand(2, i64)), (5, 7), turned))
        both, sum_of = {0: (0, 2, 1), 1: (0, 2, 1)}, apply("add", operand(0, f16), operand(1, f16))
        return [
            *cases,
            _case("channels_first", apply("sub", operand(0, i8), operand(1, i8)), (2, 17, 4, 5), {1: (0, 2, 3, 1)}),
            _case("both", sum_of, (3, 18, 40), both),
            _case("widened", apply("mul", operand(0, f32), cast(operand(1, f16), f32)), (16, 16), turned),
            replace(_case("rows", sum_of, (2, 19, 21), {1: (0, 2, 1)}), repeated={0: (0, 1)}),
            replace(_case("columns", sum_of, (2, 19, 21), {1: (0, 2, 1)}), repeated={0: (2,)}),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [turned_sum]

    def match(self, call: Call, target: Target) -> No | Needs:
        if not has_traffic(target):
            return No("the target does not transpose tiles in registers")
        views = [*call.outs, *call.ins]
        (expr,) = call.kind.expressions()
        reason = static_views(call) or _refusal(call, target)
        if reason:
            return No(reason)
        if isinstance(expr, Operand) or any(isinstance(node, Index) for node in walk(expr)):
            return No("only for expressions without positions")
        if any(view.buffer.dtype.bits not in (8, 16, 32, 64) or view.buffer.dtype.is_packed for view in views):
            return No("only for elements of 1, 2, 4 or 8 bytes")
        layout = _layout(call)
        if layout is None:
            return No("no operand is transposed against the result, or its rows are too short")
        dtype = _in_vectors(call, target)
        blocks = (best_lanes(layout.side, target, dtype), dtype.bits) if dtype is not None else ()
        return Needs(numeric="ulp", blocks=blocks)

    def cost(self, call: Call, target: Target) -> Cost:
        if "rvv" in target.isas:  # vectors of any length are transposed in memory
            return Cost(1.5 * one_by_one(call, target), code=800)
        layout, machine, views = _layout(call), target.machine, (*call.outs, *call.ins)
        assert layout is not None
        width = layout.side
        blocks = prod(layout.nest.loops[number].extent for number in layout.around)
        blocks *= -(-layout.i.extent // width) * -(-layout.j.extent // width)
        each = 2 * AROUND / machine.issue
        for number in layout.turned:
            side = REGISTER // call.ins[number - 1].buffer.dtype.bits
            tile = side / machine.loads + side / machine.stores + side * (side.bit_length() - 1)
            each += (width // side) ** 2 * tile
        if call.blocks:
            row = width / call.blocks[0] * each_vector(call, call.blocks[0], target)
        else:
            row = width * lane_work(call.kind.expressions(), [view.buffer.dtype for view in views], target)
        each += width * (AROUND / machine.issue + row)
        return Cost(max(blocks * each, traffic(views, target, innermost(call), width)), code=800)

    def headers(self, call: Call) -> frozenset[str]:
        vectors = vector_headers(call, _computed_in(call)) if call.blocks else frozenset[str]()
        return frozenset({"mcc_vec_transpose_bits.h"}) | vectors

    def units(self, call: Call) -> Sequence[int]:
        """The outermost loop."""
        layout = _layout(call)
        assert layout is not None
        return (1,) * layout.nest.loops[layout.around[0]].extent if layout.around else ()

    def context(self, call: Call) -> Mapping[str, Any]:
        layout, ((y,), names) = _layout(call), self.parameter_names(call)
        assert layout is not None
        loops = layout.nest.loops
        around = [Range(loops[number].counter, loops[number].extent) for number in layout.around]
        if call.workers > 1 and around:
            around[0] = replace(around[0], begin="begin", end="end")
        return {
            "around": around,
            "side": layout.side,
            "down": layout.j.extent,
            "across": layout.i.extent,
            "at_down": _begin("down", layout.j.extent, layout.side),
            "at_across": _begin("across", layout.i.extent, layout.side),
            "tiles": [_tile(call, layout, number, names[number - 1]) for number in layout.turned],
            "lines": list(_in_floats(call, layout, y, names) if call.blocks else _in_lanes(call, layout, y, names)),
        }

    def label(self, call: Call) -> str:
        return map_label(call, first="turned", copy="turned")


@dataclass(frozen=True)
class _Layout(Across):
    turned: tuple[int, ...]  # views of operands that lie across
    side: int  # of a block

    def steps(self, view: int) -> tuple[int, int]:
        """From element to element of a view along I and J."""
        strides = self.nest.strides[view]
        return static(strides[self.at_i]), static(strides[self.at_j])

    def place(self, view: int, i: int | str | Code = "0", j: str = "0") -> str:
        """C of an index, `i` and `j` after the first element of the block."""
        counters: list[str | Code] = [loop.counter for loop in self.nest.loops]
        counters[self.at_i], counters[self.at_j] = "column", "row"
        return index_c(
            [*self.nest.strides[view], *self.steps(view)], [*counters, i if isinstance(i, Code) else str(i), j]
        )


def _layout(call: Call) -> _Layout | None:
    loops = ordered_nest([*call.outs, *call.ins])
    at_i, views = len(loops.loops) - 1, range(1, 1 + len(call.ins))
    if at_i < 1 or loops.strides[0][at_i] != 1:
        return None
    for at_j in range(at_i):
        found = _Layout(loops, at_i, at_j, (), 0)
        steps = {view: found.steps(view) for view in views}
        turned = tuple(view for view, (along, down) in steps.items() if along not in (0, 1) and down == 1)
        rest = all(along in (0, 1) for view, (along, _) in steps.items() if view not in turned)
        least = max((REGISTER // call.ins[view - 1].buffer.dtype.bits for view in turned), default=0)
        sides = [side for side in SIDES if least <= side <= min(found.i.extent, found.j.extent)]
        if turned and rest and sides:
            return replace(found, turned=turned, side=sides[0])
    return None


def _begin(counter: str, extent: int, side: int) -> str:
    last = extent - side
    return counter if extent % side == 0 else f"{counter} < {last} ? {counter} : {last}"


def _refusal(call: Call, target: Target) -> str:
    """Why its rows are not computed in vectors, or nothing."""
    if _in_vectors(call, target) is not None:
        return ""
    return lanes_refusal(target, call.kind.expressions(), [view.buffer.dtype for view in (*call.outs, *call.ins)])


def _in_vectors(call: Call, target: Target) -> DType | None:
    """The floats of vectors that compute it; None where loops over lanes have to."""
    (expr,) = call.kind.expressions()
    dtype = f64 if expr.dtype is f64 else f32
    known = (bool_,) if dtype is f64 else KNOWN
    return None if vector_refusal(target, dtype) or refusal(expr, dtype, known) else dtype


def _computed_in(call: Call) -> DType:
    return f64 if call.blocks[1] == f64.bits else f32


def _tile(call: Call, layout: _Layout, number: int, name: str) -> Mapping[str, Any]:
    """A block of an operand: the type and name of its place, and the tiles that are transposed into it."""
    dtype, (along, _) = call.ins[number - 1].buffer.dtype, layout.steps(number)
    side = REGISTER // dtype.bits
    return {
        "type": dtype.storage_c,
        "name": f"{name}_turned",
        "bits": dtype.bits,
        "step": side,
        "source": f"{name} + {layout.place(number, 'i', 'j')}",
        "from": along,
    }


def _in_floats(call: Call, layout: _Layout, y: str, names: Sequence[str]) -> Iterator[str]:
    """A row of a block in vectors of floats."""
    lanes, dtype, out = call.blocks[0], _computed_in(call), call.outs[0].buffer.dtype
    chunk = Chunk("", lanes)
    for begin in range(0, layout.side, lanes):
        loads = []
        for number, (name, view) in enumerate(zip(names, call.ins, strict=True), 1):
            turned = number in layout.turned
            place = f"r * {layout.side} + {begin}" if turned else layout.place(number, begin, "r")
            step = 1 if turned else layout.steps(number)[0]
            loads.append(chunk.load(lanes, f"{name}_turned" if turned else name, place, step, view.buffer.dtype, dtype))
        made, value = to_vector_statements(call.kind.expressions()[0], loads, lanes, dtype=dtype)
        store = chunk.store(lanes, y, layout.place(0, begin, "r"), value, 1, out, dtype)
        yield from ("{", *made, store, "}")


def _in_lanes(call: Call, layout: _Layout, y: str, names: Sequence[str]) -> Iterator[str]:
    """The same in loops over lanes."""
    lane, loads = Code("lane"), []
    for number, (name, view) in enumerate(zip(names, call.ins, strict=True), 1):
        turned, dtype = number in layout.turned, view.buffer.dtype
        index = f"r * {layout.side} + lane" if turned else layout.place(number, lane, "r")
        load = load_c(dtype, f"{name}_turned" if turned else name, index)
        loads.append(f"const {dtype.compute_c} of_{name} = {load};")
    expr = without_branches(call.kind.expressions()[0])
    made, value = to_statements(expr, [f"of_{name}" for name in names])
    store = store_c(call.outs[0].buffer.dtype, y, layout.place(0, lane, "r"), value)
    yield from each_lane(layout.side, [*loads, *made, store], cuts(expr))


def turned_sum(first: int, second: int, last: int) -> Case:
    """Both sides of the largest block are covered."""
    expr = apply("add", operand(0, f32), operand(1, f32))
    return _case(f"{first}_{second}_{last}", expr, (first, second + SIDES[0] - 1, last + SIDES[0] - 1), {1: (0, 2, 1)})


def _case(name: str, expr: Expr, shape: tuple[int, ...], permute: Mapping[int, tuple[int, ...]]) -> Case:
    dtypes = {node.index: node.dtype for node in walk(expr) if isinstance(node, Operand)}
    ins = tuple(TensorType(dtype, shape) for _, dtype in sorted(dtypes.items()))
    return Case(name, Map(expr), ins, (TensorType(expr.dtype, shape),), permute=permute)
