"""gemm of numbers that other kernels with vectors do not multiply, as 64-bit floats and integers of 32 bits and more:
tiles of sums in vectors of the compiler. A panel of columns of b is copied into the workspace first, so b may lie in
any way. Factors lose their zero points where they are read.

Invariant: a sum is added up in the order of the portable kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, f64, i8, i32, i64, u8, u16, u32, u64
from mccompile.base.records import dataclass
from mccompile.base.tensor import Shape, TensorType
from mccompile.codegen.lanes import cuts, each_lane, lanes_refusal, without_branches
from mccompile.codegen.loops import Nest, index_c, nest
from mccompile.codegen.tiles import Range, epilogue_alias, parts, term_c
from mccompile.codegen.traffic import fmas_of, has_traffic
from mccompile.codegen.vector.vector_tiles import FLOAT, lanes_of, vector_headers
from mccompile.expr.ir import apply, cast, literal, operand
from mccompile.expr.scalar_c import load_c, store_c, to_statements
from mccompile.kernels.api import Call, Case, Cost, Kernel, Needs, No, SizedCase, Target, static_views, supports_types
from mccompile.kinds.gemm import Gemm

SUMS = 12  # vectors of a tile
TYPES = (f64, i32, u32, i64, u64)
PACKING = 1.5  # cycles of an element


@dataclass(frozen=True)
class Tile:
    header: str
    terms: list[str]  # of a, for each row


@dataclass(frozen=True)
class Panel:
    header: str
    vectors: int
    packed: list[str]  # makes a row of it
    tiles: list[Tile]
    results: list[str]  # of a row of a tile


class Panels(Kernel):
    kind = Gemm
    branches = ""

    def cases(self) -> Sequence[Case]:
        sizes = [(1, 3, 2), (7, 5, 11), (9, 33, 37), (5, 1, 16), (12, 8, 64)]
        cases = [_case(f"{dtype}_{m}x{k}x{n}", (m, k), (k, n), dtype) for dtype in TYPES for m, k, n in sizes]
        turned = _case("turned", (6, 7), (7, 21), f64, permute={0: (1, 0), 1: (1, 0)})
        batches = _case("batches", (2, 3, 4, 5), (2, 3, 5, 7), i32, permute={0: (0, 2, 1, 3), 1: (0, 2, 1, 3)})
        rounded = _case("rounded", (5, 6), (6, 19), f64)
        rounded = replace(rounded, kind=Gemm(f64, cast(operand(0, f64), i32)), outs=(TensorType(i32, (5, 19)),))
        mixed = _case("bytes", (5, 6), (6, 19), i32)
        return [
            *cases,
            turned,
            batches,
            replace(batches, name="one_for_all", permute={}, repeated={1: (0, 1)}),
            replace(turned, name="result_across", permute_outs={0: (1, 0)}),
            rounded,
            replace(mixed, ins=(TensorType(i8, (5, 6)), mixed.ins[1])),
            *(zero_points(dtype, a, b) for dtype in (u16, u8) for a in (False, True) for b in (False, True) if a or b),
            Case.of_one_type(
                "epilogue",
                Gemm(i32, apply("max", apply("add", operand(0, i32), operand(1, i32)), literal(0, i32))),
                ((9, 6), (6, 19)),
                (9, 19),
                i32,
                extras=1,
            ),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [doubles]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind, y = call.of(Gemm), call.outs[0]
        reason = (
            ("" if has_traffic(target) else "the target has no vectors of all types")
            or supports_types(call)
            or static_views(call)
        )
        if reason:
            return No(reason)
        if kind.accumulator not in TYPES:
            return No("only for sums of 64-bit floats and of integers of 32 bits and more")
        if "dot" in target.isas and all(view.buffer.dtype.bits <= 8 for view in call.ins[:2]):
            return No("the target has dot products of bytes")
        if 0 in (*y.shape, *call.ins[0].shape):
            return No("the result is empty")
        reason = lanes_refusal(target, kind.expressions(), ())
        if reason:
            return No(reason)
        lanes = lanes_of(target) * FLOAT * 8 // kind.accumulator.bits
        vectors = min(2, -(-static(y.shape[-1]) // lanes))
        scratch = static(call.ins[0].shape[-1]) * lanes * vectors * kind.accumulator.bits // 8
        blocks = (lanes, vectors, SUMS // vectors)
        return Needs(
            scratch=scratch, scratch_align=64, alias=epilogue_alias(call, kind.fixed), numeric="ulp", blocks=blocks
        )

    def cost(self, call: Call, target: Target) -> Cost:
        *batches, rows, columns = call.outs[0].type.static_shape
        (lanes, vectors, points), depth = call.blocks, static(call.ins[0].shape[-1])
        panels = -(-columns // (lanes * vectors))
        fmas = fmas_of(lanes * call.of(Gemm).accumulator.bits // 8 // FLOAT, target)
        cycles = rows * max(-(-columns // lanes) / fmas, panels) * depth + rows * columns
        cycles += PACKING * depth * panels * lanes * vectors + panels * -(-rows // points) * 4 * target.machine.latency
        return Cost(prod(batches) * cycles, code=600)

    def label(self, call: Call) -> str:
        a, y = call.ins[0], call.outs[0]
        return "_".join(["gemm", *map(str, y.shape[:-2]), f"{a.shape[-2]}x{a.shape[-1]}x{y.shape[-1]}"])

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call) | ({"mcc_vec_f64.h"} if call.of(Gemm).accumulator is f64 else set())

    def context(self, call: Call) -> Mapping[str, Any]:
        lanes, vectors, _ = call.blocks
        return {
            "batches": [Range.over(loop.counter, loop.count) for loop in _batches(call).loops],
            "panels": [self.panel(call, *part) for part in parts("j", call.outs[0].shape[-1], lanes * vectors)],
            "type": _number(call),
            "fused": f"f64x{lanes}" if call.of(Gemm).accumulator is f64 else "",
            "many": f"mcc_all_{_number(call).removesuffix('_t')}",
            "lanes": lanes,
            "depth": static(call.ins[0].shape[-1]),
        }

    def panel(self, call: Call, header: str, columns: int) -> Panel:
        lanes, _, points = call.blocks
        vectors = -(-columns // lanes)
        wide, names = vectors * lanes, self.parameter_names(call)[1]
        place = f"panel[{index_c([wide, 1], ['k', 'lane'])}]"
        packed = each_lane(columns, [f"{place} = {_term(call, 1, names, ['k', 'j', 'lane'], (-2, -1, -1))};"])
        if wide > columns:
            packed.append(f"for (mcc_index lane = {columns}; lane < {wide}; ++lane) {place} = 0;")
        tiles = [
            Tile(header, [_term(call, 0, names, ["i", str(point), "k"], (-2, -2, -1)) for point in range(many)])
            for header, many in parts("i", call.outs[0].shape[-2], points)
        ]
        return Panel(header, vectors, packed, tiles, self.results(call, columns, wide))

    def results(self, call: Call, columns: int, wide: int) -> list[str]:
        """What `sums` become."""
        (y,), names = self.parameter_names(call)
        kind = call.of(Gemm)

        def place(number: int) -> str:
            view = [*call.outs, *call.ins][number]
            steps = [view.strides[axis] for axis in (-2, -2, -1, -1)]
            return index_c([1, *steps], [_batches(call).index(number), "i", "point", "j", "lane"])

        loads = [load_c(call.ins[n].buffer.dtype, names[n], place(n + 1)) for n in range(kind.fixed, len(names))]
        ends = without_branches(kind.epilogue or operand(0, kind.accumulator))
        lines, value = to_statements(ends, ["total", *loads], local="v")
        type, sum_at = kind.accumulator.compute_c, index_c([wide, 1], ["point", "lane"])
        total = f"const {type} total = ({type})sums[{sum_at}];"
        store = store_c(call.outs[0].buffer.dtype, y, place(0), value)
        return each_lane(columns, [total, *lines, store], cuts(ends))


def _number(call: Call) -> str:
    """What is added up. Sums of integers wrap around, as those without signs do."""
    total = call.of(Gemm).accumulator
    return total.compute_c if total.is_float else f"uint{total.bits}_t"


def _batches(call: Call) -> Nest:
    return nest(call.outs[0].shape[:-2], [*call.outs, *call.ins], prefix="n")


def _term(call: Call, number: int, names: Sequence[str], counters: Sequence[str], axes: Sequence[int]) -> str:
    """C of a factor, less the zero point of its row or column. `axes`: those of the counters."""
    kind, view = call.of(Gemm), call.ins[number]
    place = index_c([1, *(view.strides[axis] for axis in axes)], [_batches(call).index(number + 1), *counters])
    zero, total = "", kind.accumulator
    if (kind.a_zero, kind.b_zero)[number]:
        at = 2 + (number and kind.a_zero)
        own = [counter for counter in counters if counter != "k"]
        steps = [call.ins[at].strides[-1]] * len(own)
        zero = term_c(view.buffer.dtype, names[at], index_c([1, *steps], [_batches(call).index(at + 1), *own]), total)
    return f"({_number(call)}){term_c(view.buffer.dtype, names[number], place, total, zero)}"


def zero_points(b: DType, of_a: bool, of_b: bool) -> Case:
    """Of 16-bit numbers; in batches, whose zero points are their own."""
    types = [TensorType(u16, (2, 5, 6)), TensorType(b, (2, 6, 19))]
    types += [TensorType(u16, (2, 5))] * of_a + [TensorType(b, (2, 19))] * of_b
    ranges = {number: (0.0, float(type.dtype.high)) for number, type in enumerate(types)}
    name = f"zero_points_{b}" + "_of_a" * of_a + "_of_b" * of_b
    kind = Gemm(i32, a_zero=of_a, b_zero=of_b)
    return Case(name, kind, tuple(types), (TensorType(i32, (2, 5, 19)),), ranges=ranges)


def doubles(first: int, second: int, last: int) -> Case:
    return _case(f"{first}_{second}_{last}", (first, second), (second, last), f64)


def _case(name: str, a: Shape, b: Shape, dtype: DType, **more: Any) -> Case:
    """Sums of integers wrap around."""
    span = 2.0 if dtype.is_float else float(min(dtype.high, 2**31 - 1))
    ends = (max(-span, dtype.low), span)
    return Case.of_one_type(name, Gemm(dtype), (a, b), (*a[:-1], b[-1]), dtype, ranges={0: ends, 1: ends}, **more)
