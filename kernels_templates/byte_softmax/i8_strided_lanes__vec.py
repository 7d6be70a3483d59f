"""byte_softmax in loops over lanes: along neighbouring groups where these lie together, else along the elements of one.

Powers are looked up one by one and kept in the workspace; the largest numbers and all quotients are found in vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from mccompile.base.dims import static
from mccompile.base.dtypes import DType, i8, u8
from mccompile.codegen.byte_softmax_cases import byte_softmax_case
from mccompile.codegen.lanes import LANES, LEAST, each_lane, lane_pieces, lanes_refusal
from mccompile.codegen.loops import Loop, Nest, index_c
from mccompile.codegen.sums import grouped
from mccompile.codegen.tiles import Range
from mccompile.expr.code import Code
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
from mccompile.kinds.byte_softmax import ByteSoftmax

MOST = 1 << 14  # powers that are kept


class Lanes(Kernel):
    kind = ByteSoftmax
    branches = "looks for the largest number, and divides"

    def cases(self) -> Sequence[Case]:
        last = {0: (0, 2, 3, 1)}
        return [
            *(byte_softmax_case(f"{x}_{y}", (3, 75), (1,), x, y, 0.1) for x in (i8, u8) for y in (i8, u8)),
            byte_softmax_case("channels", (2, 7, 3, 29), (1,), i8, u8, 0.05),
            byte_softmax_case("columns", (9, 150), (0,), u8, i8, 0.02),
            byte_softmax_case("channels_last", (2, 37, 3, 2), (1,), i8, i8, 0.05, permute=last),
            byte_softmax_case("two_axes", (2, 3, 4, 25), (1, 3), i8, i8, 0.05),
            byte_softmax_case("steep", (5, 19), (1,), i8, i8, 3.0),
            byte_softmax_case("coarse", (5, 19), (1,), i8, i8, 0.1, scale=0.3),
        ]

    def sized_cases(self) -> Sequence[SizedCase]:
        return [rows]

    def match(self, call: Call, target: Target) -> No | Needs:
        reason = lanes_refusal(target, [], [view.buffer.dtype for view in call.ins]) or static_views(call)
        if reason:
            return No(reason)
        chosen = _lanes(call)
        if chosen is None:
            return No("neither elements nor groups lie together, or they are too few")
        kept = _kept(call)
        if kept > MOST:
            return No("too many powers to keep")
        alias = {(0, 0): 0} if elementwise_alias(call, 0) else {}
        return Needs(alias=alias, dense=frozenset({1}), scratch=4 * kept, scratch_align=64)

    def cost(self, call: Call, target: Target) -> Cost:
        return Cost(static(call.ins[0].type.count) * 2 * target.machine.element, code=900)

    def context(self, call: Call) -> Mapping[str, Any]:
        found = _lanes(call)
        assert found is not None
        row, beside = found
        outer, _ = _nests(call)
        around = [Range.over(loop.counter, loop.count) for loop in outer.loops if loop != row]
        if not beside:
            return {"outer": around, "lines": self.of_group(call, row)}
        lines = []
        for begin, many in lane_pieces(row.extent):
            if many > LANES:
                whole = many // LANES * LANES
                lines += [Range(row.counter, 0, str(begin), str(begin + whole), LANES).header]
                lines += [*self.of_groups(call, row, row.counter, LANES), "}"]
                begin, many = begin + whole, many - whole
            if many:
                lines += ["{", *self.of_groups(call, row, str(begin), many), "}"]
        return {"outer": around, "lines": lines}

    def of_groups(self, call: Call, row: Loop, first: str, many: int) -> list[str]:
        """C for so many groups from `first` on."""
        x = call.ins[0].buffer.dtype
        _, inner = _nests(call)
        loops = [Range.over(loop.counter, loop.count).header for loop in inner.loops]
        ends = ["}"] * len(loops)
        read, store = _element(call, row, first)
        total = "total[lane] + (uint64_t)(total[lane] == 0)"
        kept = f"powers[{index_c([many, 1], ['place', 'lane'])}]"
        return [
            f"{x.storage_c} top[{many}];",
            f"uint64_t total[{many}], share[{many}];",
            "mcc_index place = 0;",
            *each_lane(many, [f"top[lane] = {int(x.low)};", "total[lane] = 0;"]),
            *loops,
            *each_lane(many, [f"top[lane] = {read} > top[lane] ? {read} : top[lane];"]),
            *ends,
            *loops,
            f"for (mcc_index lane = 0; lane < {many}; ++lane) {{",
            f"{kept} = table[(uint8_t)(top[lane] - {read})];",
            f"total[lane] += {kept};",
            "}",
            "++place;",
            *ends,
            f"for (mcc_index lane = 0; lane < {many}; ++lane) share[lane] = (uint64_t)factor[0] / ({total});",
            "place = 0;",
            *loops,
            *each_lane(many, [_quotient(kept, "share[lane]"), store]),
            "++place;",
            *ends,
        ]

    def of_group(self, call: Call, row: Loop) -> list[str]:
        """C for one group whose elements lie along a row."""
        _, inner = _nests(call)
        around = [loop for loop in inner.loops if loop != row]
        loops, ends = [Range.over(loop.counter, loop.count).header for loop in around], ["}"] * len(around)
        at = index_c([row.extent, 1], ["place", "lane"]) if around else "lane"
        next_row = ["++place;"] if around else []
        top, sums, made = list[str](), list[str](), list[str]()
        for begin, many in lane_pieces(row.extent):
            read, store = _element(call, row, str(begin))
            kept = f"powers[{at} + {begin}]" if begin else f"powers[{at}]"
            top += each_lane(many, [f"top = {read} > top ? {read} : top;"])
            sums += [f"for (mcc_index lane = 0; lane < {many}; ++lane) {{"]
            sums += [f"{kept} = table[(uint8_t)(top - {read})];", f"total += {kept};", "}"]
            made += each_lane(many, [_quotient(kept, "share"), store])
        return [
            f"int32_t top = {int(call.ins[0].buffer.dtype.low)};",
            "uint64_t total = 0;",
            *(["mcc_index place = 0;"] if around else []),
            *[*loops, *top, *ends],
            *[*loops, *sums, *next_row, *ends],
            "const uint64_t share = (uint64_t)factor[0] / (total + (uint64_t)(total == 0));",
            *(["place = 0;"] if around else []),
            *[*loops, *made, *next_row, *ends],
        ]

    def label(self, call: Call) -> str:
        return f"softmax_{prod(static(call.ins[0].shape[axis]) for axis in call.of(ByteSoftmax).axes)}"


def _nests(call: Call) -> tuple[Nest, Nest]:
    _, outer, inner = grouped(call.of(ByteSoftmax).axes, (call.outs[0], call.ins[0]), call.ins[0])
    return outer, inner


def _lanes(call: Call) -> tuple[Loop, bool] | None:
    """The loop that lanes lie along, and whether it is one over groups."""
    for beside, loops in zip((True, False), _nests(call), strict=True):
        for loop, step in zip(loops.loops, loops.strides[1], strict=True):
            if step == 1 and loop.extent >= LEAST // 2:
                return loop, beside
    return None


def _kept(call: Call) -> int:
    (_, inner), found = _nests(call), _lanes(call)
    assert found is not None
    row, beside = found
    return prod(loop.extent for loop in inner.loops) * (min(row.extent, LANES) if beside else 1)


def _element(call: Call, row: Loop, first: str) -> tuple[str, str]:
    """C that reads the element of a lane, and that stores its quotient."""
    outer, inner = _nests(call)
    lane = Code("lane" if first == "0" else f"{first} + lane", loose=first != "0")
    counters = [lane if loop == row else loop.counter for loop in (*outer.loops, *inner.loops)]
    y, x = (index_c([*outer.strides[i], *inner.strides[i]], counters) for i in range(2))
    kept: DType = call.outs[0].buffer.dtype
    value = f"mcc_saturate_{kept}(mcc_add_i32((int32_t)quotient, zero[0]))"
    return f"x[{x}]", f"y[{y}] = ({kept.storage_c}){value};"


def _quotient(power: str, share: str) -> str:
    return f"const uint32_t quotient = mcc_even_shift({power} * {share}, shift[0]);"


def rows(first: int, second: int, last: int) -> Case:
    """Shorter rows are not served."""
    shape = (first, second, last + LEAST // 2 - 1)
    return byte_softmax_case(f"{first}_{second}_{last}", shape, (1 + second % 2,), i8, u8, 0.1)
