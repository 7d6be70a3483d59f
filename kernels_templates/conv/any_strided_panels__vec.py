"""conv of integers that other kernels with vectors do not multiply, as those of 16 bits, in vectors of the compiler: a
tile of positions x channels in registers, any strides, any number of dimensions. The weights of a panel of channels are
copied into the workspace first, less their zero points, so they may lie in any way.

Invariant: sums wrap around as those of the portable kernel do, so results have the same bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, i8, i16, i32, i64, u8, u16, u32, u64
from mccompile.base.tensor import Shape, TensorType, dense_strides
from mccompile.codegen.direct_conv import DirectConv, DirectConvKernel
from mccompile.codegen.lanes import cuts, each_lane, lanes_refusal, without_branches
from mccompile.codegen.loops import index_c
from mccompile.codegen.tiles import Named, Product, Range, Tile, epilogue_alias, term_c
from mccompile.codegen.traffic import fmas_of, has_traffic, of_results
from mccompile.codegen.vector.vector_tiles import FLOAT, lanes_of, vector_headers
from mccompile.expr.code import Code
from mccompile.expr.ir import Expr, apply, cast, literal, operand
from mccompile.kernels.api import Call, Case, Cost, Needs, No, SizedCase, Target, static_views, supports_types, terms
from mccompile.kinds.conv import Conv

SUMS = 12  # vectors of a tile
TYPES = (i32, u32, i64, u64)
PACKING = 1.5  # cycles of a weight
RELU_OF_INTEGERS = apply("max", apply("add", operand(0, i32), operand(1, i32)), literal(0, i32))
PLAIN = Conv((1, 1), (1, 1), (1, 1, 1, 1), 1, i32)


class Panels(DirectConvKernel):
    def cases(self) -> Sequence[Case]:
        last = {0: (0, 2, 3, 1)}
        biased = replace(PLAIN, epilogue=RELU_OF_INTEGERS)
        return [
            *(_case(f"{dtype}", replace(PLAIN, accumulator=dtype), (1, 3, 8, 9), (19, 3, 3, 3)) for dtype in TYPES),
            _case("channels_last", PLAIN, (2, 5, 8, 9), (37, 5, 3, 3), permute=last, permute_outs=last),
            _case("odd", Conv((2, 3), (2, 1), (0, 2, 1, 0), 1, i32), (2, 3, 11, 27), (5, 3, 3, 2)),
            _case("windows_outside", replace(PLAIN, pads=(5,) * 4), (1, 2, 3, 3), (3, 2, 3, 3)),
            _case("1x1", replace(PLAIN, pads=(0,) * 4), (2, 7, 5, 3), (13, 7, 1, 1), constant=True),
            _case("groups", replace(PLAIN, group=3), (2, 6, 6, 6), (51, 2, 3, 3), constant=True),
            _case("1d", Conv((2,), (3,), (4, 1), 1, i64), (2, 3, 45), (16, 3, 4)),
            _case("3d", Conv((1, 2, 1), (1, 1, 2), (1, 0, 2, 0, 1, 2), 1, i64), (1, 2, 4, 5, 6), (9, 2, 2, 3, 2)),
            _case("tall", Conv((1, 1), (1, 1), (1, 0, 1, 0), 1, i32), (1, 3, 22, 3), (32, 3, 3, 3)),
            _case("weights_across", PLAIN, (1, 3, 6, 6), (8, 3, 3, 3), permute={1: (2, 3, 1, 0)}),
            replace(_case("epilogue", biased, (1, 3, 6, 17), (18, 3, 3, 3), extras=1), permute={2: last[0]}),
            _narrow("words", i16, i8, i16),
            _narrow("words_of_words", i16, i16, i16),
            _narrow("unsigned_words", u16, u8, u16),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [words]

    def match(self, call: Call, target: Target) -> No | Needs:
        kind = call.of(Conv)
        reason = (
            ("" if has_traffic(target) else "the target has no vectors of all types")
            or supports_types(call)
            or static_views(call)
        )
        if reason:
            return No(reason)
        if kind.accumulator not in TYPES:
            return No("only for sums of integers")
        if "dot" in target.isas and all(view.buffer.dtype.bits <= 8 for view in call.ins[:2]):
            return No("the target has dot products of bytes")
        if 0 in (*call.outs[0].shape, *call.ins[0].shape, *call.ins[1].shape):
            return No("the result is empty")
        if kind.group > 1 and call.ins[1].shape[0] == kind.group:
            return No("not for one result per group")
        reason = lanes_refusal(target, kind.expressions(), ())
        if reason:
            return No(reason)
        lanes = lanes_of(target) * FLOAT * 8 // kind.accumulator.bits
        vectors = min(2, -(-static(call.ins[1].shape[0]) // kind.group // lanes))
        scratch = terms(call) * lanes * vectors * kind.accumulator.bits // 8
        return Needs(
            scratch=scratch,
            scratch_align=64,
            alias=epilogue_alias(call, kind.fixed),
            blocks=(lanes, vectors, SUMS // vectors),
        )

    def cost(self, call: Call, target: Target) -> Cost:
        kind, (lanes, vectors, _), (count, depth) = (
            call.of(Conv),
            call.blocks,
            (static(call.ins[1].shape[0]), terms(call)),
        )
        panels = kind.group * -(-count // kind.group // (lanes * vectors))
        fmas = fmas_of(lanes * kind.accumulator.bits // 8 // FLOAT, target)
        positions = static(call.outs[0].type.count) // count
        cycles = positions * panels * depth * max(vectors / fmas, 1) + PACKING * depth * panels * lanes * vectors
        return Cost(cycles + of_results(call, target), code=1200)

    def pack(self, call: Call, constants: Mapping[int, Any]) -> Mapping[int, Any]:
        return {}

    def packing(self, call: Call) -> Mapping[int, str]:
        return {}

    def headers(self, call: Call) -> frozenset[str]:
        return vector_headers(call)

    def printer(self, call: Call) -> DirectConv:
        return _Panels(call, self.parameter_names(call)[1])


class _Panels(DirectConv):
    def __init__(self, call: Call, names: list[str]) -> None:
        self.blocks, self.kernel = call.blocks, call.ins[1].type.static_shape[2:]
        super().__init__(replace(call, blocks=()), names)
        self.call = call
        self.w_lane, self.w_input, self.row = 1, self.tile.lanes, self.tile.lanes
        self.taps = [static(stride) * self.group_in * self.row for stride in dense_strides(self.kernel)]
        self.axes = self.spatial_axes(self.taps)

    def best_tile(self, points: int, lanes: int) -> Tile:
        """Positions that are left over are computed one at a time, and take about as long as two."""
        width, vectors, most = self.blocks
        sizes = range(1, max(1, min(points, most)) + 1)
        best = min(sizes, key=lambda size: (points // size * (size + 1) + points % size * 2, -size))
        return Tile(best, width * vectors)

    def packed_row(self, channels: int) -> int:
        return self.tile.lanes

    @property
    def loops(self) -> list[Range]:
        """Over panels, whose weights come into the workspace first, and pictures."""
        panel = Range("o", self.group_out, step=self.tile.lanes, then="\n".join(self.panel()))
        return [Range("g", self.kind.group), panel, Range.over("n", self.x.shape[0])]

    def panel(self) -> list[str]:
        """C that copies weights less their zero points; lanes without a channel have the last one's."""
        total, lane = self.kind.accumulator, Code("channel")
        group, step = self.channel()[0], static(self.w.strides[0])
        counters = [f"t{number}" for number in range(len(self.kernel))]
        steps = [static(stride) for stride in self.w.strides[1:]]
        loops = [Range(name, size) for name, size in zip(counters, self.kernel, strict=True)]
        zero = ""
        if self.kind.w_zero:
            each = static(self.call.ins[2 + self.kind.x_zero].strides[0])
            at = index_c([each * self.group_out, each], [group, lane])
            zero = term_c(self.w.buffer.dtype, "w_zero", at, total)
        at = index_c([step * self.group_out, step, *steps], [group, lane, "c", *counters])
        place = index_c([1, *self.taps, self.row], ["lane", *counters, "c"])
        value = term_c(self.w.buffer.dtype, "w", at, total, zero)
        return [
            *(loop.header for loop in (*loops, Range("c", self.group_in))),
            f"for (mcc_index lane = 0; lane < {self.row}; ++lane) {{",
            f"const mcc_index channel = o + lane < {self.group_out} ? o + lane : {self.group_out - 1};",
            f"panel[{place}] = ({self.number})({value});",
            *["}"] * (len(loops) + 2),
        ]

    @property
    def ends(self) -> Expr:
        return without_branches(super().ends)

    @property
    def number(self) -> str:
        """What is added up: sums wrap around, as those without signs do."""
        return f"uint{self.kind.accumulator.bits}_t"

    def products(self, tile: Tile) -> tuple[Named, Named, tuple[Product, ...]]:
        zeros, loads, _ = super().products(replace(tile, lanes=1))
        kept = tuple((name, value) for name, value in zeros if name == "zero_x")
        return kept, tuple((name, f"({self.number})({value})") for name, value in loads if name != "w0"), ()

    def results(self, body: Any) -> list[str]:
        """C of what becomes of the sums at one point: of a whole panel, or of the last one."""
        total, place = (
            self.kind.accumulator.compute_c,
            "lane" if body.tile.points == 1 else f"point * {self.row} + lane",
        )
        lines = [f"const {total} total = ({total})sums[{place}];", *body.lines, body.store]
        cut, rest = cuts(self.ends), self.group_out % self.row
        found: list[str] = []
        if self.group_out >= self.row:
            found = each_lane(self.row, lines, cut)
        if rest:
            last = each_lane(rest, lines, cut)
            found = [f"if (o + {self.row} <= {self.group_out}) {{", *found, "} else {", *last, "}"] if found else last
        return found

    def context(self) -> dict[str, Any]:
        outer = [self.cut(loop) for loop in self.loops]
        return {
            **super().context(),
            "outer": [loop for loop in outer if loop.extent != 1 or loop.counter == "o"],
            "type": self.number,
            "many": f"mcc_all_{self.number.removesuffix('_t')}",
            "vectors": self.call.blocks[1],
            "results": self.results,
        }


def words(channels: int, results: int, width: int) -> Case:
    found = _narrow("", i16, i8, i16, (2, channels, 3, width), results)
    return replace(found, name=f"{channels}_{results}_{width}")


def _narrow(name: str, x: DType, w: DType, y: DType, shape: Shape = (2, 5, 6, 13), results: int = 21) -> Case:
    """With zero points; sums are cut off at the ends of the result's type."""
    ends = apply("max", apply("min", operand(0, i32), literal(y.high, i32)), literal(y.low, i32))
    kind = replace(PLAIN, epilogue=cast(ends, y), x_zero=True, w_zero=True)
    kernel, zeros = TensorType(w, (results, shape[1], 3, 3)), (TensorType(x, ()), TensorType(w, (results,)))
    types = (TensorType(x, shape), kernel, *zeros)
    out = TensorType(y, kind.out_shape(shape, kernel.shape))
    ranges = {number: (float(type.dtype.low), float(type.dtype.high)) for number, type in enumerate(types)}
    return Case(name, kind, types, (out,), ranges=ranges, constant=frozenset({1, 3}))


def _case(name: str, kind: Conv, x: Shape, w: Shape, **more: Any) -> Case:
    """Sums wrap around."""
    dtype = kind.accumulator
    span = float(min(dtype.high, 2**31 - 1))
    ends = (max(-span, dtype.low), span)
    return Case.of_one_type(name, kind, (x, w), kind.out_shape(x, w), dtype, ranges={0: ends, 1: ends}, **more)
